"""Types of the report's JSON Schema in the words of docs/json.md."""

from __future__ import annotations

from typing import Any


def type_of(schema: dict[str, Any]) -> str:
    """As `integer`, `number or null`, `array of [Pair](#pair)`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return ", ".join(f"`{x}`" for x in schema["enum"])
    if "anyOf" in schema:
        parts = [type_of(x) for x in schema["anyOf"]]
        if parts == ["number", "`nan`, `inf`, `-inf`"]:
            return "number"
        return " or ".join(parts)
    if "prefixItems" in schema:
        return f"pair of {' and '.join(type_of(x) for x in schema['prefixItems'])}"
    if schema["type"] == "array":
        return f"array of {type_of(schema['items'])}"
    return str(schema["type"])
