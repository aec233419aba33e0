# ruff: noqa: E501 - a case is one line, however long its message is
"""Hostile input at every entry point of the API and of the command line, each with its whole message.

One line a case: what is given, and the refusal. The database says the same before and after each.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbretrieval import Context, Hit, Index, KBError
from kbretrieval.cli import main
from kbretrieval.identity import Provenance
from tests.unit.doubles import Table, logical_dump

GRAMMAR = re.compile(r"(?P<code>[a-z][a-z0-9_]*): \S[^\n]*\S")
SECRET = "机密"
ARRAY = np.array(["a", "b"])  # compares to an array, which is neither true nor false
ALICE = Context("acme", "alice")
HIT = Hit(1, "acme", "d", 1, 1, "0" * 64, "0" * 64, 0, 2, "alice", SECRET, SECRET, "", (), 0.5, 0.0).to_dict()

# What commands are given besides.
FILES = {
    "text.txt": "机密的正文".encode(),
    "latin.txt": b"\xe9t\xe9",
    "text.json": b"[1]",
    "noending": b"x",
    "hits.json": b"[]",
    "object.json": b'{"schema": "x"}',
    "deep.json": b"[" * 100_000,
    "many.json": b"[" + b"1, " * 200 + b"1]",
}

_INDEX = ("--index", "kb.sqlite")
_ASKED = (*_INDEX, "--tenant", "acme", "--as", "alice")
_DOCUMENT = (*_INDEX, "--tenant", "acme", "--doc-id", "d")
NEEDED = {
    **dict.fromkeys(("search", "answer", "audit"), _ASKED),
    **dict.fromkeys(("add", "delete", "acl", "status"), _DOCUMENT),
    "documents": _ASKED[:4],
    "backup": _INDEX,
}

# entry point → what is given instead of a usual argument, and the whole message
# fmt: off
TABLE: dict[str, list[tuple[Any, str]]] = {
    "upsert": [
        ({"tenant": ""}, "invalid_identity: tenant: 1 to 200 code points are required, 0 given"),
        ({"tenant": "a" * 201}, "invalid_identity: tenant: 1 to 200 code points are required, 201 given"),
        ({"tenant": None}, "invalid_identity: tenant: a string is required, NoneType given"),
        ({"tenant": b"acme"}, "invalid_identity: tenant: a string is required, bytes given"),
        ({"tenant": 7}, "invalid_identity: tenant: a string is required, int given"),
        ({"tenant": "*"}, "invalid_identity: tenant: '*' alone is reserved"),
        ({"tenant": " acme"}, "invalid_identity: tenant: white space at an end is not allowed"),
        ({"tenant": "acme\n"}, "invalid_identity: tenant: a control character (U+000A) is not allowed"),
        ({"tenant": "ac\u200bme"}, "invalid_identity: tenant: a format character (U+200B) is not allowed"),
        ({"tenant": "ac\u202eme"}, "invalid_identity: tenant: a format character (U+202E) is not allowed"),
        ({"tenant": "ac\u00a0me"}, "invalid_identity: tenant: white space other than U+0020 (U+00A0) is not allowed"),
        ({"tenant": "ac\u2028me"}, "invalid_identity: tenant: white space other than U+0020 (U+2028) is not allowed"),
        ({"tenant": "e\u0301"}, "invalid_identity: tenant: the string is not in NFC"),
        ({"tenant": "\ud800"}, "invalid_identity: tenant: a surrogate (U+D800) is not allowed"),
        ({"tenant": "a\x00"}, "invalid_identity: tenant: a control character (U+0000) is not allowed"),
        ({"tenant": "\ufeffacme"}, "invalid_identity: tenant: a format character (U+FEFF) is not allowed"),
        ({"tenant": "\U000e0041acme"}, "invalid_identity: tenant: a format character (U+E0041) is not allowed"),
        ({"doc_id": ""}, "invalid_identity: doc_id: 1 to 1024 code points are required, 0 given"),
        ({"doc_id": "d" * 1025}, "invalid_identity: doc_id: 1 to 1024 code points are required, 1025 given"),
        ({"doc_id": ["d"]}, "invalid_identity: doc_id: a string is required, list given"),
        ({"doc_id": "d\t1"}, "invalid_identity: doc_id: a control character (U+0009) is not allowed"),
        ({"doc_id": "d\x7f"}, "invalid_identity: doc_id: a control character (U+007F) is not allowed"),
        ({"doc_id": "d\u3000x"}, "invalid_identity: doc_id: white space other than U+0020 (U+3000) is not allowed"),
        ({"doc_id": "d "}, "invalid_identity: doc_id: white space at an end is not allowed"),
        ({"doc_id": "\u212b"}, "invalid_identity: doc_id: the string is not in NFC"),
        ({"doc_id": "*"}, "invalid_identity: doc_id: '*' alone is reserved"),
        ({"doc_id": True}, "invalid_identity: doc_id: a string is required, bool given"),
        ({"revision": 0}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, 0 given"),
        ({"revision": -1}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, -1 given"),
        ({"revision": 2**63}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, 9223372036854775808 given"),
        ({"revision": 10**400}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, int given"),
        ({"revision": True}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, bool given"),
        ({"revision": 1.0}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, float given"),
        ({"revision": "1"}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, str given"),
        ({"revision": None}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, NoneType given"),
        ({"revision": float("nan")}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, float given"),
        ({"revision": []}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, list given"),
        ({"format": ""}, "unsupported_format: one of markdown, text, json is required, another (0 characters) given"),
        ({"format": "pdf"}, "unsupported_format: one of markdown, text, json is required, another (3 characters) given"),
        ({"format": "Markdown"}, "unsupported_format: one of markdown, text, json is required, another (8 characters) given"),
        ({"format": None}, "unsupported_format: one of markdown, text, json is required, another (NoneType) given"),
        ({"format": []}, "unsupported_format: one of markdown, text, json is required, another (list) given"),
        ({"format": {"a": 1}}, "unsupported_format: one of markdown, text, json is required, another (dict) given"),
        ({"format": "机密" * 5}, "unsupported_format: one of markdown, text, json is required, another (10 characters) given"),
        ({"source": None}, "text_required: a string is required, NoneType given"),
        ({"source": b"bytes"}, "text_required: a string is required, bytes given"),
        ({"source": 7}, "text_required: a string is required, int given"),
        ({"source": ["机密"]}, "text_required: a string is required, list given"),
        ({"source": "机密\x00"}, "invalid_text: U+0000 at code point 2: no NUL and no lone surrogate is allowed"),
        ({"source": "机密\ud83d"}, "invalid_text: U+D83D at code point 2: no NUL and no lone surrogate is allowed"),
        ({"source": "\udfff机密"}, "invalid_text: U+DFFF at code point 0: no NUL and no lone surrogate is allowed"),
        ({"source": "机" * 4_000_001}, "source_too_large: at most 4000000 code points are allowed, 4000001 given"),
        ({"source": "𠮷" * 3_000_001}, "source_too_large: at most 12000000 bytes are allowed, 12000004 given"),
        ({"source": "# 机密\n" * 50_001}, "source_too_large: at most 50000 headings are allowed, 50001 found"),
        ({"source": "---\ntitle: \"\\ud800机密\"\n---\n"}, "invalid_text: the front matter's title holds NUL or a lone surrogate"),
        ({"format": "json", "source": ""}, "invalid_json: one JSON value is required, none ends well at line 1, column 1"),
        ({"format": "json", "source": "机密"}, "invalid_json: one JSON value is required, none ends well at line 1, column 1"),
        ({"format": "json", "source": "{"}, "invalid_json: one JSON value is required, none ends well at line 1, column 2"),
        ({"format": "json", "source": "{'title': 1}"}, "invalid_json: one JSON value is required, none ends well at line 1, column 2"),
        ({"format": "json", "source": "[" * 65}, "json_too_deep: at most 64 levels are allowed, level 65 begins at 64"),
        ({"format": "json", "source": "[" * 1_000_000}, "json_too_deep: at most 64 levels are allowed, level 65 begins at 64"),
        ({"format": "json", "source": '{"a":' * 100_000}, "json_too_deep: at most 64 levels are allowed, level 65 begins at 320"),
        ({"format": "json", "source": "[]"}, "unsupported_json_shape: exactly the keys title and sections are required, list given"),
        ({"format": "json", "source": "null"}, "unsupported_json_shape: exactly the keys title and sections are required, NoneType given"),
        ({"format": "json", "source": "NaN"}, "unsupported_json_shape: no number is allowed, 1 given"),
        ({"format": "json", "source": "-Infinity"}, "unsupported_json_shape: no number is allowed, 1 given"),
        ({"format": "json", "source": "1e999"}, "unsupported_json_shape: no number is allowed, 1 given"),
        ({"format": "json", "source": "9" * 5000}, "unsupported_json_shape: no number is allowed, 1 given"),
        ({"format": "json", "source": '"机密"'}, "unsupported_json_shape: exactly the keys title and sections are required, str given"),
        ({"format": "json", "source": "{}"}, "unsupported_json_shape: exactly the keys title and sections are required, 0 keys given"),
        ({"format": "json", "source": '{"title": "机密"}'}, "unsupported_json_shape: exactly the keys title and sections are required, 1 keys given"),
        ({"format": "json", "source": '{"title": "机密", "sections": {}}'}, "unsupported_json_shape: title must be a string and sections a list, str and dict given"),
        ({"format": "json", "source": '{"title": 1, "sections": []}'}, "unsupported_json_shape: no number is allowed, 1 given"),
        ({"format": "json", "source": '{"title": "机密", "title": "b", "sections": []}'}, "unsupported_json_shape: no key may stand twice in an object, 1 repeated"),
        ({"format": "json", "source": '{"title": "a", "sections": [], "机密": 1}'}, "unsupported_json_shape: no number is allowed, 1 given"),
        ({"format": "json", "source": '{"title": "a", "sections": ["机密"]}'}, "unsupported_json_section: section 1: exactly the keys heading and text are required, str given"),
        ({"format": "json", "source": '{"title": "a", "sections": [null]}'}, "unsupported_json_section: section 1: exactly the keys heading and text are required, NoneType given"),
        ({"format": "json", "source": '{"title": "a", "sections": [{"heading": "机密"}]}'}, "unsupported_json_section: section 1: exactly the keys heading and text are required, 1 keys given"),
        ({"format": "json", "source": '{"title": "a", "sections": [{"heading": "机密", "text": true}]}'}, "unsupported_json_section: section 1: two strings are required, str and bool given"),
        ({"format": "json", "source": '{"title": "a", "sections": [{"heading": "机密", "heading": "b", "text": "c"}]}'}, "unsupported_json_shape: no key may stand twice in an object, 1 repeated"),
        ({"format": "json", "source": '{"title": "\\u0000机密", "sections": []}'}, "invalid_text: a JSON string holds NUL or a lone surrogate"),
        ({"format": "json", "source": '{"title": "\\ud800机密", "sections": []}'}, "invalid_text: a JSON string holds NUL or a lone surrogate"),
        ({"format": "json", "source": '{"title": "a", "sections": []} 机密'}, "invalid_json: one JSON value is required, none ends well at line 1, column 32"),
        ({"format": "json", "source": '\ufeff\ufeff{"title": "机密", "sections": []}'}, "invalid_json: one JSON value is required, none ends well at line 1, column 1"),
        ({"acl": None}, "explicit_acl_list_required: a list is required, NoneType given"),
        ({"acl": "alice"}, "explicit_acl_list_required: a list is required, str given"),
        ({"acl": ("alice",)}, "explicit_acl_list_required: a list is required, tuple given"),
        ({"acl": {"alice"}}, "explicit_acl_list_required: a list is required, set given"),
        ({"acl": {"alice": 1}}, "explicit_acl_list_required: a list is required, dict given"),
        ({"acl": [""]}, "explicit_acl_list_required: entry 1: 1 to 200 code points are required, 0 given"),
        ({"acl": [None]}, "explicit_acl_list_required: entry 1: a string is required, NoneType given"),
        ({"acl": ["alice", 7]}, "explicit_acl_list_required: entry 2: a string is required, int given"),
        ({"acl": [["alice"]]}, "explicit_acl_list_required: entry 1: a string is required, list given"),
        ({"acl": ["alice\n"]}, "explicit_acl_list_required: entry 1: a control character (U+000A) is not allowed"),
        ({"acl": ["group:"]}, "explicit_acl_list_required: entry 1: 1 to 200 code points are required, 0 given"),
        ({"acl": ["group:a:b"]}, "explicit_acl_list_required: entry 1: a colon in a group name is not allowed"),
        ({"acl": ["group:*"]}, "explicit_acl_list_required: entry 1: '*' alone is reserved"),
        ({"acl": ["a" * 201]}, "explicit_acl_list_required: entry 1: 1 to 200 code points are required, 201 given"),
        ({"acl": ["al\u200dice"]}, "explicit_acl_list_required: entry 1: a format character (U+200D) is not allowed"),
        ({"acl": ["a"] * 10_001}, "explicit_acl_list_required: at most 10000 entries are allowed, 10001 given"),
        ({"acl": ["* "]}, "explicit_acl_list_required: entry 1: white space at an end is not allowed"),
        ({"acl": ["\ud800"]}, "explicit_acl_list_required: entry 1: a surrogate (U+D800) is not allowed"),
        ({"restore": 1}, "explicit_restore_boolean_required: True or False is required, int given"),
        ({"restore": None}, "explicit_restore_boolean_required: True or False is required, NoneType given"),
        ({"restore": "true"}, "explicit_restore_boolean_required: True or False is required, str given"),
        ({"restore": []}, "explicit_restore_boolean_required: True or False is required, list given"),
        ({"provenance": {"uri": "x"}}, "invalid_provenance: a Provenance is required, dict given"),
        ({"provenance": "file:///x"}, "invalid_provenance: a Provenance is required, str given"),
        ({"provenance": 0}, "invalid_provenance: a Provenance is required, int given"),
        ({"revision": 2}, "stale_or_conflicting_revision: revision 2 given, 3 stored"),
        ({"doc_id": "gone", "revision": 2}, "stale_or_conflicting_revision: revision 2 given, 3 stored"),
        ({"doc_id": "gone", "revision": 9}, "deleted_document_requires_explicit_restore: revision 9 given without restore, deleted at revision 3"),
        ({"tenant": ARRAY}, "invalid_identity: tenant: a string is required, ndarray given"),
        ({"doc_id": ARRAY}, "invalid_identity: doc_id: a string is required, ndarray given"),
        ({"revision": ARRAY}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, ndarray given"),
        ({"format": ARRAY}, "unsupported_format: one of markdown, text, json is required, another (ndarray) given"),
        ({"source": ARRAY}, "text_required: a string is required, ndarray given"),
        ({"acl": ARRAY}, "explicit_acl_list_required: a list is required, ndarray given"),
        ({"acl": [ARRAY]}, "explicit_acl_list_required: entry 1: a string is required, ndarray given"),
        ({"acl": [["*"], "alice"]}, "explicit_acl_list_required: entry 1: a string is required, list given"),
        ({"restore": ARRAY}, "explicit_restore_boolean_required: True or False is required, ndarray given"),
        ({"provenance": ARRAY}, "invalid_provenance: a Provenance is required, ndarray given"),
        ({"revision": np.int64(4)}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, int64 given"),
        ({"tenant": np.str_("ac\nme")}, "invalid_identity: tenant: a control character (U+000A) is not allowed"),
    ],
    "set_acl": [
        ({"tenant": ""}, "invalid_identity: tenant: 1 to 200 code points are required, 0 given"),
        ({"tenant": 1}, "invalid_identity: tenant: a string is required, int given"),
        ({"doc_id": "\x00"}, "invalid_identity: doc_id: a control character (U+0000) is not allowed"),
        ({"doc_id": ()}, "invalid_identity: doc_id: a string is required, tuple given"),
        ({"principals": "bob"}, "explicit_acl_list_required: a list is required, str given"),
        ({"principals": None}, "explicit_acl_list_required: a list is required, NoneType given"),
        ({"principals": ["\u202ebob"]}, "explicit_acl_list_required: entry 1: a format character (U+202E) is not allowed"),
        ({"principals": [b"bob"]}, "explicit_acl_list_required: entry 1: a string is required, bytes given"),
        ({"expected_acl_revision": 0}, "positive_acl_revision_required: an integer from 1 to 9223372036854775807 is required, 0 given"),
        ({"expected_acl_revision": True}, "positive_acl_revision_required: an integer from 1 to 9223372036854775807 is required, bool given"),
        ({"expected_acl_revision": "1"}, "positive_acl_revision_required: an integer from 1 to 9223372036854775807 is required, str given"),
        ({"expected_acl_revision": 1.0}, "positive_acl_revision_required: an integer from 1 to 9223372036854775807 is required, float given"),
        ({"expected_acl_revision": None}, "positive_acl_revision_required: an integer from 1 to 9223372036854775807 is required, NoneType given"),
        ({"expected_acl_revision": 2**63}, "positive_acl_revision_required: an integer from 1 to 9223372036854775807 is required, 9223372036854775808 given"),
        ({"expected_acl_revision": 2}, "stale_acl_revision: ACL revision 2 given, 1 stored"),
        ({"doc_id": "gone"}, "document_not_live: ACL revision 1 given, no live document of this name"),
        ({"doc_id": "never"}, "document_not_live: ACL revision 1 given, no live document of this name"),
        ({"tenant": "beta"}, "document_not_live: ACL revision 1 given, no live document of this name"),
        ({"principals": [ARRAY]}, "explicit_acl_list_required: entry 1: a string is required, ndarray given"),
        ({"expected_acl_revision": ARRAY}, "positive_acl_revision_required: an integer from 1 to 9223372036854775807 is required, ndarray given"),
        ({"expected_acl_revision": 10**5000}, "positive_acl_revision_required: an integer from 1 to 9223372036854775807 is required, int given"),
    ],
    "delete": [
        ({"tenant": "\u200f"}, "invalid_identity: tenant: a format character (U+200F) is not allowed"),
        ({"doc_id": "d\r"}, "invalid_identity: doc_id: a control character (U+000D) is not allowed"),
        ({"doc_id": None}, "invalid_identity: doc_id: a string is required, NoneType given"),
        ({"revision": 0}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, 0 given"),
        ({"revision": 2**64}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, 18446744073709551616 given"),
        ({"revision": False}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, bool given"),
        ({"revision": 2.0}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, float given"),
        ({"revision": "9"}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, str given"),
        ({"revision": 3}, "delete_requires_new_revision: revision 3 given, 3 stored"),
        ({"revision": 2}, "delete_requires_new_revision: revision 2 given, 3 stored"),
        ({"doc_id": "gone", "revision": 1}, "stale_or_conflicting_revision: revision 1 given, deleted at revision 3"),
        ({"revision": 10**5000}, "positive_revision_required: an integer from 1 to 9223372036854775807 is required, int given"),
    ],
    "search": [
        ({"query": ""}, "bounded_query_required: 1 to 1024 code points are required, 0 given"),
        ({"query": "机" * 1025}, "bounded_query_required: 1 to 1024 code points are required, 1025 given"),
        ({"query": None}, "bounded_query_required: a string is required, NoneType given"),
        ({"query": b"q"}, "bounded_query_required: a string is required, bytes given"),
        ({"query": 7}, "bounded_query_required: a string is required, int given"),
        ({"query": ["机密"]}, "bounded_query_required: a string is required, list given"),
        ({"query": "机密\ud800"}, "bounded_query_required: text without lone surrogates is required, one given"),
        ({"query": "\udc80"}, "bounded_query_required: text without lone surrogates is required, one given"),
        ({"context": None}, "trusted_context_required: a Context is required, NoneType given"),
        ({"context": {"tenant": "acme", "principal": "alice"}}, "trusted_context_required: a Context is required, dict given"),
        ({"context": ("acme", "alice", ())}, "trusted_context_required: a Context is required, tuple given"),
        ({"context": "alice"}, "trusted_context_required: a Context is required, str given"),
        ({"context": object()}, "trusted_context_required: a Context is required, object given"),
        ({"context": Context}, "trusted_context_required: a Context is required, type given"),
        ({"limit": 0}, "invalid_search_options: limit: an integer from 1 to 100 is required, 0 given"),
        ({"limit": 101}, "invalid_search_options: limit: an integer from 1 to 100 is required, 101 given"),
        ({"limit": -1}, "invalid_search_options: limit: an integer from 1 to 100 is required, -1 given"),
        ({"limit": True}, "invalid_search_options: limit: an integer from 1 to 100 is required, bool given"),
        ({"limit": "5"}, "invalid_search_options: limit: an integer from 1 to 100 is required, str given"),
        ({"limit": 5.0}, "invalid_search_options: limit: an integer from 1 to 100 is required, float given"),
        ({"limit": None}, "invalid_search_options: limit: an integer from 1 to 100 is required, NoneType given"),
        ({"limit": 10**400}, "invalid_search_options: limit: an integer from 1 to 100 is required, int given"),
        ({"mode": "fuzzy"}, "invalid_search_options: mode: one of lexical, vector, hybrid is required, another given"),
        ({"mode": ""}, "invalid_search_options: mode: one of lexical, vector, hybrid is required, another given"),
        ({"mode": None}, "invalid_search_options: mode: one of lexical, vector, hybrid is required, another given"),
        ({"mode": ["hybrid"]}, "invalid_search_options: mode: one of lexical, vector, hybrid is required, another given"),
        ({"mode": b"hybrid"}, "invalid_search_options: mode: one of lexical, vector, hybrid is required, another given"),
        ({"options": None}, "invalid_search_options: options: SearchOptions is required, NoneType given"),
        ({"options": {}}, "invalid_search_options: options: SearchOptions is required, dict given"),
        ({"options": "BOOK"}, "invalid_search_options: options: SearchOptions is required, str given"),
        ({"lexical": "bm25"}, "invalid_search_options: lexical: one of isolated, fts5 is required, another given"),
        ({"lexical": None}, "invalid_search_options: lexical: one of isolated, fts5 is required, another given"),
        ({"lexical": ["fts5"]}, "invalid_search_options: lexical: one of isolated, fts5 is required, another given"),
        ({"fusion": "sum"}, "invalid_search_options: fusion: one of rrf, convex is required, another given"),
        ({"fusion": 1}, "invalid_search_options: fusion: one of rrf, convex is required, another given"),
        ({"rerank": "model"}, "invalid_search_options: rerank: one of none, title is required, another given"),
        ({"rerank": True}, "invalid_search_options: rerank: one of none, title is required, another given"),
        ({"rrf_k": 0}, "invalid_search_options: rrf_k: an integer from 1 to 1000000 is required, 0 given"),
        ({"rrf_k": 1_000_001}, "invalid_search_options: rrf_k: an integer from 1 to 1000000 is required, 1000001 given"),
        ({"rrf_k": 60.0}, "invalid_search_options: rrf_k: an integer from 1 to 1000000 is required, float given"),
        ({"rrf_k": True}, "invalid_search_options: rrf_k: an integer from 1 to 1000000 is required, bool given"),
        ({"window": 0}, "invalid_search_options: window: an integer from 1 to 1000 is required, 0 given"),
        ({"window": 1001}, "invalid_search_options: window: an integer from 1 to 1000 is required, 1001 given"),
        ({"window": None}, "invalid_search_options: window: an integer from 1 to 1000 is required, NoneType given"),
        ({"lexical_share": -0.1}, "invalid_search_options: lexical_share: a number from 0.0 to 1.0 is required, another given"),
        ({"lexical_share": 1.1}, "invalid_search_options: lexical_share: a number from 0.0 to 1.0 is required, another given"),
        ({"lexical_share": float("nan")}, "invalid_search_options: lexical_share: a number from 0.0 to 1.0 is required, another given"),
        ({"lexical_share": "0.5"}, "invalid_search_options: lexical_share: a number from 0.0 to 1.0 is required, another given"),
        ({"lexical_share": True}, "invalid_search_options: lexical_share: a number from 0.0 to 1.0 is required, another given"),
        ({"机密": 1}, "invalid_search_options: 6 options are known, 1 unknown given"),
        ({"filter": "1=1"}, "invalid_search_options: 6 options are known, 1 unknown given"),
        ({"query": ARRAY}, "bounded_query_required: a string is required, ndarray given"),
        ({"context": ARRAY}, "trusted_context_required: a Context is required, ndarray given"),
        ({"limit": ARRAY}, "invalid_search_options: limit: an integer from 1 to 100 is required, ndarray given"),
        ({"mode": ARRAY}, "invalid_search_options: mode: one of lexical, vector, hybrid is required, another given"),
        ({"lexical": ARRAY}, "invalid_search_options: lexical: one of isolated, fts5 is required, another given"),
        ({"options": ARRAY}, "invalid_search_options: options: SearchOptions is required, ndarray given"),
        ({"lexical_share": ARRAY}, "invalid_search_options: lexical_share: a number from 0.0 to 1.0 is required, another given"),
        ({"rrf_k": 10**5000}, "invalid_search_options: rrf_k: an integer from 1 to 1000000 is required, int given"),
        ({"lexical_share": 10**5000}, "invalid_search_options: lexical_share: a number from 0.0 to 1.0 is required, another given"),
    ],
    "answer": [
        ({"context": None}, "trusted_context_required: a Context is required, NoneType given"),
        ({"context": {"tenant": "acme"}}, "trusted_context_required: a Context is required, dict given"),
        ({"hits": None}, "hits_list_required: a list of hits is required, NoneType given"),
        ({"hits": "机密"}, "hits_list_required: a list of hits is required, str given"),
        ({"hits": b"x"}, "hits_list_required: a list of hits is required, bytes given"),
        ({"hits": bytearray(2)}, "hits_list_required: a list of hits is required, bytearray given"),
        ({"hits": 7}, "hits_list_required: a list of hits is required, int given"),
        ({"hits": {}}, "hits_list_required: a list of hits is required, dict given"),
        ({"hits": {"schema": "kbretrieval.hit/1"}}, "hits_list_required: a list of hits is required, dict given"),
        ({"hits": set()}, "hits_list_required: a list of hits is required, set given"),
        ({"hits": iter(())}, "hits_list_required: a list of hits is required, tuple_iterator given"),
        ({"hits": object()}, "hits_list_required: a list of hits is required, object given"),
        ({"hits": [None] * 201}, "too_many_hits: at most 200 hits are allowed, 201 given"),
        ({"hits": range(10**9)}, "too_many_hits: at most 200 hits are allowed, 1000000000 given"),
        ({"limit": 0}, "invalid_answer_limit: an integer from 1 to 10 is required, 0 given"),
        ({"limit": 11}, "invalid_answer_limit: an integer from 1 to 10 is required, 11 given"),
        ({"limit": True}, "invalid_answer_limit: an integer from 1 to 10 is required, bool given"),
        ({"limit": None}, "invalid_answer_limit: an integer from 1 to 10 is required, NoneType given"),
        ({"limit": 2.0}, "invalid_answer_limit: an integer from 1 to 10 is required, float given"),
        ({"limit": "2"}, "invalid_answer_limit: an integer from 1 to 10 is required, str given"),
        ({"limit": 10**400}, "invalid_answer_limit: an integer from 1 to 10 is required, int given"),
        ({"hits": ARRAY}, "hits_list_required: a list of hits is required, ndarray given"),
        ({"limit": ARRAY}, "invalid_answer_limit: an integer from 1 to 10 is required, ndarray given"),
        ({"limit": 10**5000}, "invalid_answer_limit: an integer from 1 to 10 is required, int given"),
    ],
    "audit": [
        ({"context": 7}, "trusted_context_required: a Context is required, int given"),
        ({"context": None}, "trusted_context_required: a Context is required, NoneType given"),
        ({"hits": None}, "hits_list_required: a list of hits is required, NoneType given"),
        ({"hits": "机密"}, "hits_list_required: a list of hits is required, str given"),
        ({"hits": {"a": 1}}, "hits_list_required: a list of hits is required, dict given"),
        ({"hits": [{}] * 201}, "too_many_hits: at most 200 hits are allowed, 201 given"),
    ],
    "status": [
        ({"tenant": ""}, "invalid_identity: tenant: 1 to 200 code points are required, 0 given"),
        ({"tenant": ["acme"]}, "invalid_identity: tenant: a string is required, list given"),
        ({"doc_id": "\u2066"}, "invalid_identity: doc_id: a format character (U+2066) is not allowed"),
        ({"doc_id": "机密\x1b"}, "invalid_identity: doc_id: a control character (U+001B) is not allowed"),
        ({"doc_id": 1}, "invalid_identity: doc_id: a string is required, int given"),
        ({"doc_id": ARRAY}, "invalid_identity: doc_id: a string is required, ndarray given"),
    ],
    "documents": [
        ({"tenant": ""}, "invalid_identity: tenant: 1 to 200 code points are required, 0 given"),
        ({"tenant": None}, "invalid_identity: tenant: a string is required, NoneType given"),
        ({"tenant": "ac\tme"}, "invalid_identity: tenant: a control character (U+0009) is not allowed"),
        ({"tenant": "t" * 201}, "invalid_identity: tenant: 1 to 200 code points are required, 201 given"),
        ({"tenant": {"acme"}}, "invalid_identity: tenant: a string is required, set given"),
    ],
    "backup": [
        ({"target": None}, "invalid_path: a path is required, NoneType given"),
        ({"target": ""}, "invalid_path: a non-empty name without NUL is required, another given"),
        ({"target": "a\x00b"}, "invalid_path: a non-empty name without NUL is required, another given"),
        ({"target": b"copy"}, "invalid_path: a path is required, bytes given"),
        ({"target": 3}, "invalid_path: a path is required, int given"),
        ({"target": "\ud800"}, "invalid_path: a name that is valid UTF-8 is required, another given"),
        ({"target": "kb.sqlite"}, "invalid_path: a new file is required, one exists"),
        ({"target": "."}, "invalid_path: a new file is required, one exists"),
        ({"target": "none/copy.sqlite"}, "storage_io_error: the file cannot be made (errno 2)"),
        ({"target": "x" * 5000}, "storage_io_error: the file cannot be made (errno 36)"),
    ],
    "open": [
        ({"path": None}, "invalid_path: a path is required, NoneType given"),
        ({"path": ""}, "invalid_path: a non-empty name without NUL is required, another given"),
        ({"path": "\x00"}, "invalid_path: a non-empty name without NUL is required, another given"),
        ({"path": b"kb.sqlite"}, "invalid_path: a path is required, bytes given"),
        ({"path": 3}, "invalid_path: a path is required, int given"),
        ({"path": "\ud800"}, "invalid_path: a name that is valid UTF-8 is required, another given"),
        ({"path": "."}, "not_an_index: a regular file is required, something else is there"),
        ({"path": "none/kb.sqlite"}, "storage_io_error: the file cannot be made (errno 2)"),
        ({"path": "text.txt"}, "not_an_index: an SQLite file is required, another kind of file is there"),
        ({"path": "x" * 5000}, "storage_io_error: the file cannot be made (errno 36)"),
        ({"encoder": object()}, "invalid_encoder: identifier, dimension, floor and encode are required, object lacks one"),
        ({"encoder": "terms"}, "invalid_encoder: identifier, dimension, floor and encode are required, str lacks one"),
        ({"encoder": Table("")}, "invalid_encoder: identifier: 1 to 1000 characters are required"),
        ({"encoder": Table("two\nlines")}, "invalid_encoder: identifier: a control character or surrogate is not allowed"),
        ({"encoder": Table("\ud800")}, "invalid_encoder: identifier: a control character or surrogate is not allowed"),
        ({"encoder": Table("another", floor=0)}, "invalid_encoder: floor: a float from -1.0 to 1.0 is required, int given"),
        ({"encoder": Table("another", floor=1.5)}, "invalid_encoder: floor: a float from -1.0 to 1.0 is required, another given"),
        ({"encoder": Table("another")}, "index_projection_contract_changed_rebuild_required: encoder: terms:bigram-nfkc/1 stored, another given"),
        ({"chunk_size": 0}, "invalid_chunk_window: size 1 to 4096 and overlap below size are required, 0 and 0 given"),
        ({"chunk_size": 4097}, "invalid_chunk_window: size 1 to 4096 and overlap below size are required, 4097 and 0 given"),
        ({"chunk_size": True}, "invalid_chunk_window: two integers are required, bool and int given"),
        ({"chunk_size": 220.0}, "invalid_chunk_window: two integers are required, float and int given"),
        ({"chunk_size": "220"}, "invalid_chunk_window: two integers are required, str and int given"),
        ({"chunk_size": 2**70}, "invalid_chunk_window: size 1 to 4096 and overlap below size are required, others given"),
        ({"chunk_size": 100}, "index_projection_contract_changed_rebuild_required: chunk_size: 220 stored, 100 given"),
        ({"overlap": -1}, "invalid_chunk_window: size 1 to 4096 and overlap below size are required, 4096 and -1 given"),
        ({"overlap": 4096}, "invalid_chunk_window: size 1 to 4096 and overlap below size are required, 4096 and 4096 given"),
        ({"overlap": None, "chunk_size": -5}, "invalid_chunk_window: size 1 to 4096 and overlap below size are required, -5 and 0 given"),
        ({"overlap": "40"}, "invalid_chunk_window: two integers are required, int and str given"),
        ({"overlap": True}, "invalid_chunk_window: two integers are required, int and bool given"),
        ({"overlap": 41}, "index_projection_contract_changed_rebuild_required: overlap: 40 stored, 41 given"),
        ({"wait_seconds": -1}, "invalid_parameter: wait_seconds: a number from 0 to 3600 is required, another given"),
        ({"wait_seconds": float("nan")}, "invalid_parameter: wait_seconds: a number from 0 to 3600 is required, another given"),
        ({"wait_seconds": float("inf")}, "invalid_parameter: wait_seconds: a number from 0 to 3600 is required, another given"),
        ({"wait_seconds": "30"}, "invalid_parameter: wait_seconds: a number from 0 to 3600 is required, another given"),
        ({"wait_seconds": None}, "invalid_parameter: wait_seconds: a number from 0 to 3600 is required, another given"),
        ({"wait_seconds": True}, "invalid_parameter: wait_seconds: a number from 0 to 3600 is required, another given"),
        ({"path": ARRAY}, "invalid_path: a path is required, ndarray given"),
        ({"encoder": ARRAY}, "invalid_encoder: identifier, dimension, floor and encode are required, ndarray lacks one"),
        ({"chunk_size": ARRAY}, "invalid_chunk_window: two integers are required, ndarray and int given"),
        ({"chunk_size": 10**5000}, "invalid_chunk_window: size 1 to 4096 and overlap below size are required, others given"),
        ({"overlap": -10**5000}, "invalid_chunk_window: size 1 to 4096 and overlap below size are required, others given"),
        ({"wait_seconds": ARRAY}, "invalid_parameter: wait_seconds: a number from 0 to 3600 is required, another given"),
        ({"wait_seconds": 10**5000}, "invalid_parameter: wait_seconds: a number from 0 to 3600 is required, another given"),
    ],
    "context": [
        ({"tenant": ""}, "invalid_identity: tenant: 1 to 200 code points are required, 0 given"),
        ({"tenant": None}, "invalid_identity: tenant: a string is required, NoneType given"),
        ({"principal": ""}, "invalid_identity: principal: 1 to 200 code points are required, 0 given"),
        ({"principal": "*"}, "invalid_identity: principal: '*' alone is reserved"),
        ({"principal": "group:hr"}, "invalid_identity: principal: a name that starts with 'group:' is reserved for groups"),
        ({"principal": "al\u2060ice"}, "invalid_identity: principal: a format character (U+2060) is not allowed"),
        ({"principal": b"alice"}, "invalid_identity: principal: a string is required, bytes given"),
        ({"groups": "hr"}, "invalid_identity: groups: a tuple is required, str given"),
        ({"groups": None}, "invalid_identity: groups: a tuple is required, NoneType given"),
        ({"groups": {"hr": 1}}, "invalid_identity: groups: a tuple is required, dict given"),
        ({"groups": ("",)}, "invalid_identity: group: 1 to 200 code points are required, 0 given"),
        ({"groups": ("a:b",)}, "invalid_identity: group: a colon is not allowed"),
        ({"groups": ("*",)}, "invalid_identity: group: '*' alone is reserved"),
        ({"groups": (7,)}, "invalid_identity: group: a string is required, int given"),
        ({"groups": [["hr"]]}, "invalid_identity: group: a string is required, list given"),
        ({"groups": tuple(map(str, range(1001)))}, "invalid_identity: groups: at most 1000 are allowed, 1001 given"),
        ({"principal": ARRAY}, "invalid_identity: principal: a string is required, ndarray given"),
        ({"groups": ARRAY}, "invalid_identity: groups: a tuple is required, ndarray given"),
        ({"groups": (ARRAY,)}, "invalid_identity: group: a string is required, ndarray given"),
    ],
    "provenance": [
        ({"uri": 7}, "invalid_provenance: uri: a string of at most 2048 is required, int given"),
        ({"uri": "u" * 2049}, "invalid_provenance: uri: a string of at most 2048 is required, 2049 given"),
        ({"connector": b"x"}, "invalid_provenance: connector: a string of at most 2048 is required, bytes given"),
        ({"version": "1\n"}, "invalid_provenance: version: a control character or surrogate is not allowed"),
        ({"collected_at": "\ud800"}, "invalid_provenance: collected_at: a control character or surrogate is not allowed"),
        ({"uri": ARRAY}, "invalid_provenance: uri: a string of at most 2048 is required, ndarray given"),
    ],
    "hit": [
        (None, "invalid_hit: a mapping is required, NoneType given"),
        ([], "invalid_hit: a mapping is required, list given"),
        ("机密", "invalid_hit: a mapping is required, str given"),
        ({}, "invalid_hit: exactly 17 known keys are required, 0 given"),
        ({"a": 1}, "invalid_hit: exactly 17 known keys are required, 1 given"),
        ({**HIT, "extra": "机密"}, "invalid_hit: exactly 17 known keys are required, 18 given"),
        ({key: value for key, value in HIT.items() if key != "end"}, "invalid_hit: exactly 17 known keys are required, 16 given"),
        ({**HIT, "schema": "kbretrieval.hit/2"}, "invalid_hit: schema: kbretrieval.hit/1 is required, another given"),
        ({**HIT, "schema": None}, "invalid_hit: schema: kbretrieval.hit/1 is required, another given"),
        ({**HIT, "chunk_key": True}, "invalid_hit: chunk_key: an integer from 1 to 2^63 - 1 is required, bool given"),
        ({**HIT, "chunk_key": 0}, "invalid_hit: chunk_key: an integer from 1 to 2^63 - 1 is required, int given"),
        ({**HIT, "revision": 1.0}, "invalid_hit: revision: an integer from 1 to 2^63 - 1 is required, float given"),
        ({**HIT, "acl_revision": "1"}, "invalid_hit: acl_revision: an integer from 1 to 2^63 - 1 is required, str given"),
        ({**HIT, "start": -1}, "invalid_hit: start: an integer from 0 to 2^63 - 1 is required, int given"),
        ({**HIT, "end": 2**63}, "invalid_hit: end: an integer from 0 to 2^63 - 1 is required, int given"),
        ({**HIT, "tenant": None}, "invalid_hit: tenant: a string without lone surrogates is required, NoneType given"),
        ({**HIT, "text": "\ud800"}, "invalid_hit: text: a string without lone surrogates is required, str given"),
        ({**HIT, "title": ["机密"]}, "invalid_hit: title: a string without lone surrogates is required, list given"),
        ({**HIT, "fused": 1}, "invalid_hit: fused: a finite number is required, int given"),
        ({**HIT, "fused": float("nan")}, "invalid_hit: fused: a finite number is required, float given"),
        ({**HIT, "title_overlap": "0.5"}, "invalid_hit: title_overlap: a finite number is required, str given"),
        ({**HIT, "channels": None}, "invalid_hit: channels: a mapping of lexical and vector is required, another value given"),
        ({**HIT, "channels": []}, "invalid_hit: channels: a mapping of lexical and vector is required, another value given"),
        ({**HIT, "channels": {"机密": {"rank": 1, "score": 1.0}}}, "invalid_hit: channels: a mapping of lexical and vector is required, another value given"),
        ({**HIT, "channels": {"lexical": {"rank": 1}}}, "invalid_hit: channels: lexical needs exactly rank and score"),
        ({**HIT, "channels": {"lexical": {"rank": 0, "score": 1.0}}}, "invalid_hit: channels: lexical needs an integer rank from 1 and a finite score"),
        ({**HIT, "channels": {"lexical": {"rank": 1, "score": float("inf")}}}, "invalid_hit: channels: lexical needs an integer rank from 1 and a finite score"),
        ({**HIT, "channels": {"vector": [1, 1.0]}}, "invalid_hit: channels: vector needs exactly rank and score"),
        (ARRAY, "invalid_hit: a mapping is required, ndarray given"),
        ({**HIT, "schema": ARRAY}, "invalid_hit: schema: kbretrieval.hit/1 is required, another given"),
        ({**HIT, "revision": ARRAY}, "invalid_hit: revision: an integer from 1 to 2^63 - 1 is required, ndarray given"),
        ({**HIT, "text": ARRAY}, "invalid_hit: text: a string without lone surrogates is required, ndarray given"),
        ({**HIT, "fused": ARRAY}, "invalid_hit: fused: a finite number is required, ndarray given"),
        ({**HIT, "channels": ARRAY}, "invalid_hit: channels: a mapping of lexical and vector is required, another value given"),
        ({**HIT, "channels": {"lexical": ARRAY}}, "invalid_hit: channels: lexical needs exactly rank and score"),
        ({**HIT, "channels": {"lexical": {"rank": ARRAY, "score": 1.0}}}, "invalid_hit: channels: lexical needs an integer rank from 1 and a finite score"),
        ({**HIT, "end": 10**5000}, "invalid_hit: end: an integer from 0 to 2^63 - 1 is required, int given"),
    ],
}
COMMANDS: list[tuple[tuple[str, ...], str]] = [
    (("search", "机密", "--limit", "0"), "invalid_search_options: limit: an integer from 1 to 100 is required, 0 given"),
    (("search", "机密", "--limit", "x"), "invalid_command_line: --limit: <int> is required, another value given; see kbretrieval search --help"),
    (("search", "机密", "--window", "1001"), "invalid_search_options: window: an integer from 1 to 1000 is required, 1001 given"),
    (("search", "机密", "--rrf-k", "0"), "invalid_search_options: rrf_k: an integer from 1 to 1000000 is required, 0 given"),
    (("search", "机密", "--lexical-share", "nan"), "invalid_search_options: lexical_share: a number from 0.0 to 1.0 is required, another given"),
    (("search", "机密", "--lexical-share", "2"), "invalid_search_options: lexical_share: a number from 0.0 to 1.0 is required, another given"),
    (("search", "机密", "--mode", "all"), "invalid_command_line: --mode: <lexical|vector|hybrid> is required, another value given; see kbretrieval search --help"),
    (("search", "机密", "--fusion", ""), "invalid_command_line: --fusion: <rrf|convex> is required, another value given; see kbretrieval search --help"),
    (("search", "机密", "--group", "a:b"), "invalid_identity: group: a colon is not allowed"),
    (("search", "机密", "--group", ""), "invalid_identity: group: 1 to 200 code points are required, 0 given"),
    (("search", "机密" * 600), "bounded_query_required: 1 to 1024 code points are required, 1200 given"),
    (("search", ""), "bounded_query_required: 1 to 1024 code points are required, 0 given"),
    (("search", "\ud800"), "bounded_query_required: text without lone surrogates is required, one given"),
    (("answer", "机密", "--limit", "11"), "invalid_answer_limit: an integer from 1 to 10 is required, 11 given"),
    (("answer",), "invalid_parameter: one of query and --hits is required, 0 given"),
    (("answer", "机密", "--hits", "hits.json"), "invalid_parameter: one of query and --hits is required, 2 given"),
    (("answer", "--hits", "none.json"), "invalid_path: a readable file is required (errno 2)"),
    (("answer", "--hits", "."), "invalid_path: a readable file is required (errno 21)"),
    (("answer", "--hits", "text.txt"), "invalid_json: one JSON value is required, none ends well at line 1, column 1"),
    (("answer", "--hits", "latin.txt"), "invalid_text: UTF-8 is required, byte 0 is none"),
    (("answer", "--hits", "object.json"), "hits_list_required: a list of hits or a search result is required, dict given"),
    (("answer", "--hits", "deep.json"), "json_too_deep: at most 64 levels are allowed, level 65 begins at 64"),
    (("audit", "text.txt"), "invalid_json: one JSON value is required, none ends well at line 1, column 1"),
    (("audit", "latin.txt"), "invalid_text: UTF-8 is required, byte 0 is none"),
    (("audit", "deep.json"), "json_too_deep: at most 64 levels are allowed, level 65 begins at 64"),
    (("audit", "many.json"), "too_many_hits: at most 200 hits are allowed, 201 given"),
    (("audit", "none.json"), "invalid_path: a readable file is required (errno 2)"),
    (("add", "none.md", "--revision", "1"), "invalid_path: a readable file is required (errno 2)"),
    (("add", ".", "--revision", "1", "--format", "text"), "invalid_path: a readable file is required (errno 21)"),
    (("add", "latin.txt", "--revision", "1"), "invalid_text: UTF-8 is required, byte 0 is none"),
    (("add", "text.txt", "--revision", "0"), "positive_revision_required: an integer from 1 to 9223372036854775807 is required, 0 given"),
    (("add", "text.txt", "--revision", "1.5"), "invalid_command_line: --revision: <int> is required, another value given; see kbretrieval add --help"),
    (("add", "text.txt", "--revision", str(2**63)), "positive_revision_required: an integer from 1 to 9223372036854775807 is required, 9223372036854775808 given"),
    (("add", "text.txt", "--revision", "2"), "stale_or_conflicting_revision: revision 2 given, 3 stored"),
    (("add", "text.txt", "--revision", "9", "--acl", ""), "explicit_acl_list_required: entry 1: 1 to 200 code points are required, 0 given"),
    (("add", "text.txt", "--revision", "9", "--acl", "group:"), "explicit_acl_list_required: entry 1: 1 to 200 code points are required, 0 given"),
    (("add", "text.txt", "--revision", "9", "--format", "pdf"), "invalid_command_line: --format: <markdown|text|json> is required, another value given; see kbretrieval add --help"),
    (("add", "text.txt", "--revision", "9", "--encoder", "gpt"), "invalid_command_line: --encoder: <terms|bge> is required, another value given; see kbretrieval add --help"),
    (("add", "text.txt", "--revision", "9", "--chunk-size", "0"), "invalid_chunk_window: size 1 to 4096 and overlap below size are required, 0 and 0 given"),
    (("add", "text.txt", "--revision", "9", "--chunk-size", "100"), "index_projection_contract_changed_rebuild_required: chunk_size: 220 stored, 100 given"),
    (("add", "text.txt", "--revision", "9", "--overlap", "-1"), "invalid_chunk_window: size 1 to 4096 and overlap below size are required, 4096 and -1 given"),
    (("add", "noending", "--revision", "9"), "unsupported_format: --format or a name that ends in .md, .markdown, .txt, .json is required, neither given"),
    (("add", "text.json", "--revision", "9"), "unsupported_json_shape: no number is allowed, 1 given"),
    (("delete", "--revision", "3"), "delete_requires_new_revision: revision 3 given, 3 stored"),
    (("delete", "--revision", "0"), "positive_revision_required: an integer from 1 to 9223372036854775807 is required, 0 given"),
    (("delete", "--revision", "3\x00"), "invalid_command_line: --revision: <int> is required, another value given; see kbretrieval delete --help"),
    (("acl", "--expected", "2"), "stale_acl_revision: ACL revision 2 given, 1 stored"),
    (("acl", "--expected", "0"), "positive_acl_revision_required: an integer from 1 to 9223372036854775807 is required, 0 given"),
    (("acl", "--expected", "1", "--acl", "\u202e"), "explicit_acl_list_required: entry 1: a format character (U+202E) is not allowed"),
    (("acl", "--expected", "1", "--acl", "a\x00"), "explicit_acl_list_required: entry 1: a control character (U+0000) is not allowed"),
    (("status", "--restore"), "invalid_command_line: a known option is required, an unknown one given; see kbretrieval status --help"),
    (("documents", "机密"), "invalid_command_line: no further argument is allowed, more given (a query of several words needs quotes); see kbretrieval documents --help"),
    (("backup", "kb.sqlite"), "invalid_path: a new file is required, one exists"),
    (("backup", "none/copy.sqlite"), "storage_io_error: the file cannot be made (errno 2)"),
    (("backup", "a\x00b"), "invalid_command_line: target: <path> is required, another value given; see kbretrieval backup --help"),
]
# fmt: on


@dataclass(frozen=True, slots=True)
class Place:
    """An open index beside the files that commands are given, and what each entry point is called with by default."""

    index: Index
    folder: Path

    def path(self, value: Any) -> Any:
        """A name in the folder where it is one, anything else as it is."""
        return str(self.folder / value) if isinstance(value, str) and value else value

    def calls(self) -> dict[str, tuple[Callable[..., object], dict[str, Any]]]:
        """Every entry point with arguments that would be accepted."""
        document = {"tenant": "acme", "doc_id": "d"}
        event = {"revision": 4, "format": "markdown", "source": "# 甲\n\n乙", "acl": ["alice"]}
        options = {"encoder": None, "chunk_size": None, "overlap": None}
        return {
            "upsert": (self.index.upsert, document | event),
            "set_acl": (self.index.set_acl, document | {"principals": ["bob"], "expected_acl_revision": 1}),
            "delete": (self.index.delete, document | {"revision": 4}),
            "search": (self.index.search, {"query": SECRET, "context": ALICE}),
            "answer": (self.index.answer, {"hits": [], "context": ALICE}),
            "audit": (self.index.audit, {"hits": [], "context": ALICE}),
            "status": (self.index.status, document),
            "documents": (self.index.documents, {"tenant": "acme"}),
            "backup": (lambda target: self.index.backup(self.path(target)), {"target": "copy.sqlite"}),
            "open": (self._open, {"path": "kb.sqlite"} | options),
            "context": (Context, {"tenant": "acme", "principal": "alice", "groups": ()}),
            "provenance": (Provenance, {}),
        }

    def _open(self, path: Any, **options: Any) -> None:
        Index.open(self.path(path), **options).close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("hostile")
    for name, raw in FILES.items():
        (folder / name).write_bytes(raw)
    with Index.open(folder / "kb.sqlite") as index:
        index.upsert("acme", "d", 3, "markdown", f"# {SECRET}\n\n正文", ["alice"])
        index.upsert("acme", "gone", 1, "text", "旧", ["alice"])
        index.delete("acme", "gone", 3)
        yield Place(index, folder)


def _is_long(given: Any) -> bool:
    return isinstance(given, dict) and any(isinstance(value, str) and len(value) > 100_000 for value in given.values())


CASES = [(entry, given, message) for entry, rows in TABLE.items() for given, message in rows]


@pytest.mark.promise("ERR-1", "ERR-2")
@pytest.mark.parametrize(
    ("entry", "given", "message"),
    [
        pytest.param(*case, id=f"{n}-{case[0]}", marks=[pytest.mark.slow] if _is_long(case[1]) else [])
        for n, case in enumerate(CASES)
    ],
)
def test_it_is_refused_with_its_message_and_nothing_is_written(
    place: Place, entry: str, given: Any, message: str
) -> None:
    before, names = logical_dump(place.folder / "kb.sqlite"), sorted(place.folder.iterdir())
    with pytest.raises(KBError) as caught:
        if entry == "hit":
            Hit.from_dict(given)
        else:
            call, usual = place.calls()[entry]
            call(**(usual | given))
    assert _anywhere(str(caught.value)) == _anywhere(message)
    _keeps_to_the_grammar(message)
    assert message.startswith(f"{caught.value.code}: ")
    assert (logical_dump(place.folder / "kb.sqlite"), sorted(place.folder.iterdir())) == (before, names)


@pytest.mark.promise("ERR-1", "ERR-2")
@pytest.mark.parametrize(
    ("arguments", "message"), COMMANDS, ids=[f"{n}-{case[0][0]}" for n, case in enumerate(COMMANDS)]
)
def test_a_command_is_refused_in_one_line(
    place: Place,
    arguments: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place.folder)
    before, names = logical_dump("kb.sqlite"), sorted(place.folder.iterdir())
    command, *rest = arguments
    status = main([command, *rest, *NEEDED[command]])
    out, err = capsys.readouterr()
    assert (out, _anywhere(err)) == ("", _anywhere(message) + "\n")
    assert status in (2, 4, 6)
    _keeps_to_the_grammar(message)
    assert (logical_dump("kb.sqlite"), sorted(place.folder.iterdir())) == (before, names)


def _anywhere(message: str) -> str:
    return re.sub(r"errno \d+", "errno N", message)  # each system has its own numbers


def _keeps_to_the_grammar(message: str) -> None:
    assert GRAMMAR.fullmatch(message) and len(message) < 300
    assert SECRET not in message


def test_the_usual_arguments_are_accepted(tmp_path: Path) -> None:
    """Or the table would be refused for another reason than the one it names."""
    with Index.open(tmp_path / "kb.sqlite") as index:
        index.upsert("acme", "d", 3, "markdown", "甲", ["alice"])
        calls = Place(index, tmp_path).calls()
        for entry in ("upsert", "set_acl", "search", "answer", "audit", "status", "documents", "backup", "open"):
            call, usual = calls[entry]
            call(**usual)
        index.delete(tenant="acme", doc_id="d", revision=5)
    assert Hit.from_dict(HIT).text == SECRET


def test_there_are_as_many_cases_as_promised() -> None:
    assert len(CASES) + len(COMMANDS) >= 200


def test_a_message_that_repeats_its_input_would_be_seen() -> None:
    with pytest.raises(AssertionError):
        _keeps_to_the_grammar(f"invalid_text: no such word as {SECRET}")
    with pytest.raises(AssertionError):
        _keeps_to_the_grammar("Traceback: two\nlines")
