"""Sentences of error messages that many cases share."""

__all__ = ("LABEL_VALUE", "MEDIA_TYPES", "MODIFIED", "NO_METHOD", "NO_RESOURCE", "QUALIFIED", "SUBDOMAIN", "UNKNOWN_MEDIA_TYPE")

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
NO_METHOD = "the server does not allow this method on the requested resource"
NO_RESOURCE = "the server could not find the requested resource"
MEDIA_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
UNKNOWN_MEDIA_TYPE = f"the body of the request was in an unknown format - accepted media types include: {MEDIA_TYPES}"
