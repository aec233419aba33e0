"""A command line that does not fit, as one refusal: which option and what it takes, never what was typed.

What was typed may be a query, so the parser's own messages, which repeat it, are not passed on.
"""

from typing import Any

from typer.exceptions import TyperException

from kbretrieval.errors import InvalidCommandLine


def _named(param: Any) -> str:
    if getattr(param, "param_type_name", "") == "argument":
        return str(param.name)
    return str(max(param.opts, key=len))


def _form(param: Any, context: Any) -> str:
    return str(param.metavar or (param.display_type(context) if context is not None else "<value>"))


def _bounds(param: Any) -> str:
    least, most = getattr(param, "min", None), getattr(param, "max", None)
    return (f", at least {least}" if least is not None else "") + (f", at most {most}" if most is not None else "")


def _facts(error: Any, context: Any) -> str:
    param = getattr(error, "param", None)
    if param is not None and hasattr(error, "param_type"):
        return f"{_named(param)} is required, none given"
    if param is not None:
        wanted = _form(param, context) + _bounds(param)
        return f"{_named(param)}: {wanted} is required, another value given"
    if hasattr(error, "possibilities"):
        near = f" (near: {', '.join(sorted(error.possibilities))})" if error.possibilities else ""
        return f"a known option is required, an unknown one given{near}"
    if hasattr(error, "option_name"):
        return f"{error.option_name}: one value is required, none for a switch, another number given"
    commands = getattr(getattr(context, "command", None), "commands", None)
    if commands:
        return f"one of {', '.join(sorted(commands))} is required, none or another given"
    return "no further argument is allowed, more given (a query of several words needs quotes)"


def refusal_of(error: TyperException) -> InvalidCommandLine:
    """Return the refusal for a command line that the parser did not accept."""
    context = getattr(error, "ctx", None)
    where = f"; see {context.command_path} --help" if context is not None else ""
    return InvalidCommandLine(_facts(error, context) + where)
