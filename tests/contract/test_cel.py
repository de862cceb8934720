"""Validation rules of custom resources."""


import pytest
import yaml

from tests.contract import rows
from tests.contract.client import Api
from tests.contract.kinds import Kind
from tests.contract.rows import GONE, Step, case, fails, patch, post, run
from tests.contract.things import definition

RULES = yaml.safe_load("""
type: object
properties:
  plain: {type: integer, x-kubernetes-validations: [{rule: self > 2, message: must be above two}]}
  unnamed: {type: integer, x-kubernetes-validations: [{rule: self > 2}]}
  said: {type: integer, x-kubernetes-validations: [{rule: self > 2, messageExpression: "'got ' + string(self)"}]}
  said_badly: {type: integer, x-kubernetes-validations: [{rule: self > 2, message: plain words, messageExpression: "self > 100 ? 'x' : string(1 / 0)"}]}
  reason: {type: integer, x-kubernetes-validations: [{rule: self > 2, message: no, reason: FieldValueForbidden}]}
  twice: {type: integer, x-kubernetes-validations: [{rule: self > 2, message: two}, {rule: self > 3, message: three}]}
  pair:
    type: object
    x-kubernetes-validations: [{rule: "self.low <= self.high", message: low above high, fieldPath: .high, reason: FieldValueDuplicate}]
    required: [low, high]
    properties: {low: {type: integer}, high: {type: integer}}
  fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: fixed}]}
  grows: {type: integer, x-kubernetes-validations: [{rule: "!oldSelf.hasValue() || self >= oldSelf.value()", optionalOldSelf: true, message: shrinks}]}
  list: {type: array, maxItems: 5, items: {type: string, maxLength: 9}, x-kubernetes-validations: [{rule: "self.all(x, x.startsWith('a'))", message: not all}, {rule: "self.exists(x, x == 'a')", message: no a}]}
  items: {type: array, maxItems: 5, items: {type: integer, x-kubernetes-validations: [{rule: self % 2 == 0, message: odd}]}}
  map: {type: object, maxProperties: 5, additionalProperties: {type: integer, x-kubernetes-validations: [{rule: self > 0, message: not positive}]}}
  named:
    type: array
    maxItems: 5
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items: {type: object, required: [name], properties: {name: {type: string, maxLength: 9}, value: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf, message: lower}]}}}
  set: {type: array, maxItems: 5, x-kubernetes-list-type: set, items: {type: string, maxLength: 9}, x-kubernetes-validations: [{rule: "self == ['a', 'b']", message: not a and b}]}
  either: {x-kubernetes-int-or-string: true, x-kubernetes-validations: [{rule: "type(self) == int ? self > 0 : self.matches('^[0-9]+%$')", message: neither}]}
  has: {type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: has(self.a) != has(self.b), message: one of a and b}]}
  when: {type: string, format: date-time, x-kubernetes-validations: [{rule: "self > timestamp('2024-01-01T00:00:00Z')", message: too early}]}
  lasts: {type: string, format: duration, x-kubernetes-validations: [{rule: "self < duration('1h')", message: too long}]}
  quantity: {type: string, maxLength: 9, x-kubernetes-validations: [{rule: "isQuantity(self) && quantity(self).isGreaterThan(quantity('1Gi'))", message: too small}]}
  size: {type: string, maxLength: 20, x-kubernetes-validations: [{rule: "self.size() == 3 && self.lowerAscii() == self", message: not three}]}
  fails: {type: integer, x-kubernetes-validations: [{rule: 10 / self > 1, message: no}]}
  url: {type: string, maxLength: 90, x-kubernetes-validations: [{rule: "isURL(self) && url(self).getScheme() == 'https'", message: not secure}]}
  split: {type: string, maxLength: 90, x-kubernetes-validations: [{rule: "self.split('-').size() == 2 && self.split('-')[0] == 'a'", message: no pair}]}
  cross: {type: integer, minimum: 5, x-kubernetes-validations: [{rule: self < 3, message: both}]}
  dash-ed: {type: integer}
x-kubernetes-validations:
- {rule: "!has(self.dash__dash__ed) || self.dash__dash__ed > 1", message: dashed}
- {rule: "!has(self.fixed) || self.fixed != 'bad'", message: bad}
""")
KIND = Kind("contract.example.com/v1", "rules", "Rule")
rows.RESOURCES["rules"] = KIND
rows.CUSTOM["rules"] = definition("rules", "Rule", RULES)


def refused(name, spec, expected):
    return case(name, post("rules/r", f"{{spec: {spec}}}", expected))


def accepted(name, spec):
    return case(name, post("rules/r", f"{{spec: {spec}}}", {"spec": yaml.safe_load(spec)}))


def changed(name, old, new, expected):
    return case(name, post("rules/r", f"{{spec: {old}}}"), patch("merge", "rules/r", f"{{spec: {new}}}", expected))


CASES = [
    refused("message", "{plain: 1}", fails(422, "Invalid", "?", causes="?", details="?")),
    refused("no_message", "{unnamed: 1}", {"@": "?", "reason": "?", "message": "?"}),
    refused("message_expression", "{said: 1}", {"@": "?", "reason": "?", "message": "?"}),
    refused("message_expression_fails", "{said_badly: 1}", {"@": "?", "reason": "?", "message": "?"}),
    refused("reason", "{reason: 1}", fails(422, "Invalid", "?", causes="?")),
    refused("two_rules", "{twice: 1}", fails(422, "Invalid", "?", causes="?")),
    refused("field_path_and_reason", "{pair: {low: 3, high: 2}}", fails(422, "Invalid", "?", causes="?")),
    refused("list", "{list: [b]}", {"@": "?", "reason": "?", "message": "?"}),
    refused("items", "{items: [2, 3, 5]}", fails(422, "Invalid", "?", causes="?")),
    refused("map", "{map: {a: 1, b: 0}}", fails(422, "Invalid", "?", causes="?")),
    refused("set_order_is_no_matter", "{set: [b]}", {"@": "?", "reason": "?", "message": "?"}),
    refused("int_or_string_int", "{either: 0}", {"@": "?", "reason": "?", "message": "?"}),
    refused("int_or_string_string", "{either: x}", {"@": "?", "reason": "?", "message": "?"}),
    refused("has", "{has: {}}", {"@": "?", "reason": "?", "message": "?"}),
    refused("timestamp", "{when: '2023-01-01T00:00:00Z'}", {"@": "?", "reason": "?", "message": "?"}),
    refused("duration", "{lasts: 2h}", {"@": "?", "reason": "?", "message": "?"}),
    refused("duration_format", "{lasts: x}", {"@": "?", "reason": "?", "message": "?"}),
    refused("quantity", "{quantity: 1Mi}", {"@": "?", "reason": "?", "message": "?"}),
    refused("quantity_bad", "{quantity: x}", {"@": "?", "reason": "?", "message": "?"}),
    refused("strings", "{size: ABC}", {"@": "?", "reason": "?", "message": "?"}),
    refused("runtime_error", "{fails: 0}", {"@": "?", "reason": "?", "message": "?"}),
    refused("url", "{url: 'http://x'}", {"@": "?", "reason": "?", "message": "?"}),
    refused("split", "{split: a}", {"@": "?", "reason": "?", "message": "?"}),
    refused("schema_fails_first", "{cross: 4}", {"@": "?", "reason": "?", "message": "?"}),
    refused("root_rule", "{fixed: bad}", {"@": "?", "reason": "?", "message": "?"}),
    refused("escaped_name", "{dash-ed: 1}", {"@": "?", "reason": "?", "message": "?"}),
    refused("type_fails_first", "{plain: x}", {"@": "?", "reason": "?", "message": "?"}),
    accepted(
        "all_fits",
        "{plain: 3, unnamed: 3, said: 3, pair: {low: 1, high: 1}, list: [a, ab], items: [2], map: {a: 1}, set: [b, a], either: 5%, has: {a: x}, size: abc, quantity: 2Gi, url: 'https://x', split: a-b, lasts: 59m, dash-ed: 2}",
    ),
    changed("transition", "{fixed: a}", "{fixed: b}", fails(422, "Invalid", "?", causes="?")),
    changed("transition_same", "{fixed: a}", "{fixed: a, plain: 3}", {"spec.plain": 3}),
    changed("transition_set_later", "{}", "{fixed: a}", {"spec.fixed": "a"}),
    changed("transition_removed", "{fixed: a}", "{fixed: null}", {"spec.fixed": GONE}),
    changed("optional_old", "{grows: 5}", "{grows: 4}", {"@": "?", "reason": "?", "message": "?"}),
    changed("optional_old_grows", "{grows: 5}", "{grows: 6}", {"spec.grows": 6}),
    changed(
        "correlated_items",
        "{named: [{name: a, value: 1}, {name: b, value: 5}]}",
        "{named: [{name: b, value: 4}, {name: a, value: 2}]}",
        {"@": "?", "reason": "?", "message": "?"},
    ),
    changed(
        "new_item_has_no_old", "{named: [{name: a, value: 1}]}", "{named: [{name: b, value: 0}, {name: a, value: 1}]}", {"spec.named.#": 2}
    ),
    case(
        "deleting_allowed",
        post("rules/r", "{metadata: {finalizers: [x/a]}, spec: {plain: 3}}"),
        patch("merge", "rules/r", "{metadata: {finalizers: null}}", {"metadata.finalizers": GONE}),
    ),
]


@pytest.mark.parametrize("steps", CASES)
async def test_a_validation_rule(api: Api, steps: tuple[Step, ...]) -> None:
    await run(api, steps)
