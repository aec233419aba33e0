"""The security mutants (FLT-4): builds with one check removed or weakened, each with the scene that has to notice."""

from tests.faults.access_mutants import CALLERS, CHANNELS
from tests.faults.breaking import Mutant, Scene
from tests.faults.order_mutants import ORDER
from tests.faults.scope_mutants import SCOPES
from tests.faults.voucher_mutants import VOUCHERS

MUTANTS: tuple[Mutant, ...] = (*CALLERS, *CHANNELS, *VOUCHERS, *ORDER, *SCOPES)
SCENES: tuple[Scene, ...] = tuple(dict.fromkeys(build.scene for build in MUTANTS))
