"""Why a file cannot be read, and what to do about it: one line without credentials."""

import lzma
import re
import zlib

from quanet.data.addresses import is_address, scheme_of, without_credentials

READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)  # raised for truncated and invalid archives
REFUSED = re.compile(
    r"access.?denied|forbidden|\b40[13]\b|invalid_access_key|signature|unauthori[sz]ed|authenticat|credential|permission",
    re.IGNORECASE,
)
UNREACHABLE = re.compile(r"network|curl|resolve|timed? ?out|connect|unavailable|slow_down|\b50[0234]\b", re.IGNORECASE)
# What Google and Azure say around the reason: the steps before it, numbers of requests, the same again.
NOISE = re.compile(
    r"^.*(with a last message of|Azure Error:|\w+ExceptionE:) (\[\] )?"
    r"|\. The request was not sent\b.*?message was"
    r"|:? error_info=.*| Request ?Id:.*| See Azure::.*",
    re.IGNORECASE,
)
REPEATED = re.compile(r"(.{20,}) (?=\1)")
GOOGLE = "GOOGLE_APPLICATION_CREDENTIALS; gs://anonymous@bucket/key for public data"
MICROSOFT = "AZURE_STORAGE_ACCOUNT_KEY, or az login"
KEYS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "gs": GOOGLE,
    "gcs": GOOGLE,
    "abfs": MICROSOFT,
    "abfss": MICROSOFT,
}


def is_refused(error: BaseException) -> bool:
    """Whether credentials are missing, wrong or not sufficient."""
    return isinstance(error, PermissionError) or REFUSED.search(str(error)) is not None


def read_problem(file: str, error: BaseException) -> str:
    """Why a file cannot be read, and how to fix it: one line that continues its name."""
    scheme = scheme_of(file)
    full = without_credentials(" ".join(str(getattr(error, "strerror", None) or error).split()))
    reason = REPEATED.sub("", NOISE.sub("", full)).rstrip(".")
    if not is_address(file):
        return f"cannot be read: {reason}."
    if "parse URI" in reason:
        return "is not a valid address. Write / and @ in a password as %2F and %40, or set it in the environment."
    if "Protocol not known" in reason:
        return "has an unknown scheme. Choose from file, s3, gs, abfs and those that fsspec knows."
    if is_refused(error):
        keys = f" ({KEYS[scheme]})" if scheme in KEYS else ""
        return f"cannot be read: no permission. Check the credentials{keys} and what they allow: {reason}."
    if UNREACHABLE.search(full):
        endpoint = " and AWS_ENDPOINT_URL" if scheme == "s3" else ""
        return f"cannot be reached. Check the network{endpoint} ({reason})."
    return f"cannot be read: {reason}."
