"""Errors that pyarrow 26 raised with Azurite and Google Cloud, and what is shown of them."""

import pytest

from quanet.data.read_problems import read_problem

SIGNATURE = (
    "Server failed to authenticate the request. Make sure the value of the Authorization header is formed correctly "
    "including the signature."
)
TOKEN = (
    "Could not create a OAuth2 access token to authenticate the request. The request was not sent, as such an access "
    "token is required to complete the request successfully. Learn more about Google Cloud authentication at "
    "https://cloud.google.com/docs/authentication. The underlying error message was: Cannot open credentials file a"
)
CONNECTION = "PerformWork() - CURL error [7]=Could not connect to server"
CHECK = "Check for Hierarchical Namespace support on"
AZURE = "Check the credentials (AZURE_STORAGE_ACCOUNT_KEY, or az login) and what they allow:"
GOOGLE = (
    "Check the credentials (GOOGLE_APPLICATION_CREDENTIALS; gs://anonymous@bucket/key for public data) and what they "
    "allow:"
)


@pytest.mark.parametrize(
    ("address", "error", "shown"),
    [
        (
            "abfs://shop/a.csv",
            "ListBlobsByHierarchy failed for prefix='a.csv'. GetFileInfo is unable to determine whether the path "
            f"exists. Azure Error: [AuthorizationFailure] 403 {SIGNATURE}\n{SIGNATURE}\nRequestId:be5f9075\n"
            "Time:2026-11-16T16:47:17.631Z\nRequest ID: be5f9075",
            f"cannot be read: no permission. {AZURE} [AuthorizationFailure] 403 {SIGNATURE}",
        ),
        (
            "abfss://shop@account.dfs.core.windows.net/a.csv",
            f"Unknown error: {CHECK} 'https://account.blob.core.windows.net/shop' failed: "
            "N5Azure4Core11Credentials23AuthenticationExceptionE: Failed to get token from DefaultAzureCredential.\n"
            "See Azure::Core::Diagnostics::Logger for details (https://aka.ms/azsdk/cpp/identity/troubleshooting).",
            f"cannot be read: no permission. {AZURE} Failed to get token from DefaultAzureCredential.",
        ),
        (
            "abfs://shop/a.csv",
            f"{CHECK} 'http://127.0.0.1:9/account/shop' failed. Azure Error: [] Fail to get a new connection for: "
            "http://127.0.0.1:9. Could not connect to server",
            "cannot be reached. Check the network (Fail to get a new connection for: http://127.0.0.1:9. Could not "
            "connect to server).",
        ),
        (
            "gs://shop/a.csv",
            f"google::cloud::Status(UNKNOWN: Permanent error, with a last message of {TOKEN} "
            f"error_info={{reason=UNKNOWN, metadata={{gcloud-cpp.retry.original-message={TOKEN}, "
            "gcloud-cpp.version=v2.37.0}})",
            f"cannot be read: no permission. {GOOGLE} Could not create a OAuth2 access token to authenticate the "
            "request: Cannot open credentials file a.",
        ),
        (
            "gs://shop/a.csv",
            f"google::cloud::Status(UNAVAILABLE: Retry policy exhausted, with a last message of {CONNECTION} "
            f"error_info={{reason=, domain=, metadata={{gcloud-cpp.retry.original-message={CONNECTION}}}}})",
            f"cannot be reached. Check the network ({CONNECTION}).",
        ),
    ],
)
def test_of_long_errors_the_reason_is_shown(address, error, shown):
    assert read_problem(address, OSError(error)) == shown
