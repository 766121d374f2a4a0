"""Files in object storage, and what is shown of errors that pyarrow 26 raised with Azurite and Google Cloud."""

import gzip
import json
import re

import pandas as pd
import pytest

from quanet.data.dataset import read_table
from quanet.data.file_names import identity_of, resolve, split_address
from quanet.data.storage import StoredFile, is_address, plain_name, read_problem, without_credentials
from quanet.data.streams import TableSource, partitions_of
from quanet.errors import BadFile, InvalidData, MissingExtra
from tests.data.object_store import serving_objects, serving_objects_elsewhere

TABLE = pd.DataFrame({"text": ["good", "bad"], "stars": [5, 1]})
CSV, PARQUET = TABLE.to_csv(index=False).encode(), TABLE.to_parquet()
FILES = {
    "reviews/a.csv": CSV,
    "reviews/b 1.csv.gz": gzip.compress(CSV, mtime=0),
    "reviews/c#2.jsonl": TABLE.to_json(orient="records", lines=True).encode(),
    "reviews/year=2024/x.parquet": PARQUET,
    "reviews/year=2025/part/y.parquet": PARQUET,
    "reviews/year=2025/.hidden.parquet": b"",
    "cases.json": json.dumps({"cases": TABLE.to_dict("records")}).encode(),
    "book.xlsx": b"PK",
}


@pytest.fixture
def store(monkeypatch):
    """An S3 server with one bucket that may be read and one that may not."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "from-the-environment")
    monkeypatch.setenv("no_proxy", "*")
    with serving_objects(buckets={"shop": dict(FILES)}, private={"vault"}) as opened:
        monkeypatch.setenv("AWS_ENDPOINT_URL", opened.url)
        yield opened


@pytest.fixture(scope="module")
def google_server():
    buckets = {"shop": FILES, "files": FILES}
    with serving_objects_elsewhere(buckets=buckets, private={"vault"}, nameless={"files"}) as url:
        yield url


@pytest.fixture
def google(google_server, monkeypatch):
    """Google Cloud with the same buckets, and one whose files may be read, but which may not be asked for itself."""
    monkeypatch.setenv("CLOUD_STORAGE_EMULATOR_ENDPOINT", google_server)
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def memory():
    """The file system of fsspec that keeps files in memory."""
    fsspec = pytest.importorskip("fsspec", reason="memory:// needs fsspec (pip install 'quanet[cloud]')")
    files = fsspec.filesystem("memory")
    for name, content in FILES.items():
        files.pipe(f"/shop/{name}", content)
    yield files
    files.rm("/shop", recursive=True)


@pytest.mark.parametrize("place", ["s3://shop", "gs://anonymous@shop", "memory://shop"])
@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("reviews/a.csv", ["a.csv"]),
        ("reviews/*.csv*", ["a.csv", "b 1.csv.gz"]),
        ("reviews/c#2.jsonl", ["c#2.jsonl"]),
        ("reviews/year=*/*.parquet", ["year=2024/x.parquet"]),
        ("reviews/year=202?/**/*.parquet", ["year=2024/x.parquet", "year=2025/part/y.parquet"]),
        ("**/[xy].parquet", ["year=2024/x.parquet", "year=2025/part/y.parquet"]),
        ("cases.json#cases", ["cases.json#cases"]),
    ],
)
def test_files_in_storage_are_read_like_local_ones(place, pattern, names, store, google, memory):
    source = TableSource([f"{place}/{pattern}"])
    folder = f"{place}/" + ("" if pattern.startswith("cases") else "reviews/")
    assert source.files == [folder + name for name in names]
    assert source.columns == ["text", "stars"]
    table = source.read(["stars", "text"])
    assert table["text"].tolist() == ["good", "bad"] * len(names)
    assert [int(stars) for stars in table["stars"]] == [5, 1] * len(names)
    assert source.size == source.position == sum(source.stamps[file].size for file in source.files)
    assert source.place(1) == f"{source.names[0]}, row 2"
    texts = [text for part in partitions_of(source) for chunk in part.chunks(["text"]) for text in chunk["text"]]
    assert texts == table["text"].tolist()
    assert read_table(source.files[0])["text"].tolist() == ["good", "bad"]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("s3://shop/reviews/no.csv", "The file s3://shop/reviews/no.csv does not exist."),
        ("s3://shops/a.csv", "no bucket 'shops'. Check its name and AWS_ENDPOINT_URL."),
        ("s3://shops/*.csv", "no bucket 'shops'. Check its name and AWS_ENDPOINT_URL."),
        ("s3://shop/reviews/*.tsv", "No file matches 's3://shop/reviews/*.tsv'."),
        (
            "s3://vault/a.csv",
            "s3://vault/a.csv cannot be read: no permission. Check the credentials (AWS_",
        ),
        (
            "s3://vault/*.csv",
            "s3://vault/*.csv cannot be read: no permission. Check the credentials (AWS_",
        ),
        (
            "s3://shop/reviews",
            "s3://shop/reviews is a folder. Pass the files in it, such as 's3://shop/reviews/*.parquet'",
        ),
        ("s3:///a.csv", "s3:///a.csv names no bucket. Write s3://bucket/file."),
        ("s3://shop/book.xlsx", "cannot be read from object storage. Copy the file to this machine first."),
        ("s3://shop/cases.json#no", "no"),
        ("s3://key:pass/word@shop/a.csv", "s3://shop/a.csv is not a valid address. Write / and @ in a password as %2F"),
        ("gs://anonymous@shop/no.csv", "The file gs://shop/no.csv does not exist."),
        ("gs://anonymous@files/no.csv", "The file gs://files/no.csv does not exist."),
        ("gs://anonymous@files/no/*.csv", "No file matches 'gs://files/no/*.csv'."),
        ("gs://anonymous@shops/*.csv", "gs://shops/*.csv cannot be read: no bucket 'shops'. Check its name."),
        (
            "gs://anonymous@vault/a.csv",
            "no permission. Check the credentials (GOOGLE_APPLICATION_CREDENTIALS; gs://anonymous@bucket/key for "
            "public data) and what they allow: reader@project does not have storage.objects.get access.",
        ),
        ("abfs:///a.csv", "abfs:///a.csv names no container. Write abfs://container/file."),
        ("abfs://shop/a.csv", "names no storage account. Write abfs://shop@account.dfs.core.windows.net/file, or set"),
        ("memory://shop/no.csv", "The file memory://shop/no.csv does not exist."),
        ("memory://no/*.csv", "No file matches 'memory://no/*.csv'."),
        ("nowhere://shop/a.csv", "nowhere://shop/a.csv has an unknown scheme. Choose from file, s3, gs, abfs"),
    ],
)
def test_what_is_wrong_with_an_address_is_one_line_that_says_what_to_do(
    file, message, store, google, memory, monkeypatch
):
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(InvalidData, match=re.escape(message)) as caught:
        TableSource([file]).read(["text"])
    assert "\n" not in str(caught.value)
    assert "pass" not in str(caught.value).replace("password", "").replace("Pass", "")


def test_no_network_is_one_line(store, monkeypatch):
    def refuse(*_):
        raise OSError("AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 7,\nCould not connect")

    system = type("System", (), {"get_file_info": refuse})
    monkeypatch.setattr("quanet.data.storage._native_system", lambda *_: (system, ""))
    with pytest.raises(InvalidData, match=r"be reached\. Check the network and AWS_ENDPOINT_URL \(.*connect\)\.$"):
        TableSource(["s3://shop/a.csv"])


def test_an_error_that_passes_is_retried(store):
    store.failures = [503]
    assert len(TableSource(["s3://shop/reviews/a.csv"]).read(["text"])) == 2
    assert not store.failures


def test_storage_that_fails_in_the_middle_is_named(store):
    source = TableSource(["s3://shop/reviews/a.csv", "s3://shop/reviews/year=2024/x.parquet"])
    source.check(["text"])
    store.private.add("shop")
    with pytest.raises(BadFile, match=r"^s3://shop/reviews/a\.csv cannot be read: no permission"):
        source.read(["text"])


def test_a_file_that_is_replaced_while_it_is_read_is_noticed(store):
    source = TableSource(["s3://shop/reviews/a.csv"])
    (part,) = partitions_of(source)
    store.buckets["shop"]["reviews/a.csv"] = CSV * 2
    with pytest.raises(BadFile, match="changed while it was read"):
        list(part.chunks(["text"]))


def test_patterns_need_one_request_however_many_files_match(store):
    store.buckets["shop"] |= {f"many/{number}.csv": CSV for number in range(50)}
    store.asked.clear()
    assert len(resolve(["s3://shop/many/*.csv"])) == 50
    assert len(store.asked) == 1


SECRET = "s3://AKIAKEY:sec%2Fret@shop/reviews/a.csv?region=t0ken"


def test_credentials_in_an_address_are_used_but_never_shown(store):
    source = TableSource([SECRET, SECRET.replace("a.csv", "*.parquet").replace("reviews/", "reviews/**/")])
    shown = [source.name, *source.names, source.place(0) if source.read(["text"]) is not None else ""]
    parts = partitions_of(source)
    shown += [repr(part) + part.name + part.id for part in parts]
    shown += [str(StoredFile(SECRET))]
    with pytest.raises(InvalidData) as caught:
        TableSource([SECRET.replace("a.csv", "no.csv")])
    shown += [str(caught.value)]
    assert not re.search(r"AKIAKEY|sec|t0ken", " ".join(shown))
    plain = partitions_of(TableSource(["s3://shop/reviews/a.csv"]))
    assert plain[0].id == parts[0].id  # of the content, not of the key


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://key:secret@b/a.csv", "s3://b/a.csv"),
        ("s3://key:se/cr@b/a.csv", "s3://b/a.csv"),
        ("s3://key@b/a.csv", "s3://b/a.csv"),
        ("gs://anonymous@b/a@b.csv", "gs://b/a@b.csv"),
        ("s3://b/a@b.csv", "s3://b/a@b.csv"),
        ("http://host:8080/a@b.csv", "http://host:8080/a@b.csv"),
        ("abfss://box:secret@account.dfs.core.windows.net/a", "abfss://box@account.dfs.core.windows.net/a"),
        ("abfss://box@account.dfs.core.windows.net/a?sas=x", "abfss://box@account.dfs.core.windows.net/a"),
        ("s3://b/y=202?/m=?.csv", "s3://b/y=202?/m=?.csv"),
        ("s3://b/y=202?/m.json?token=a/b=&x=1#part", "s3://b/y=202?/m.json#part"),
        ("s3://b/my file.csv?token=x cannot be read", "s3://b/my file.csv cannot be read"),
        ("folder/a.csv?token=x", "folder/a.csv?token=x"),
    ],
)
def test_what_is_shown_of_an_address(text, shown):
    assert without_credentials(text) == shown
    assert without_credentials(shown) == shown


def test_names_of_local_files_are_no_addresses(tmp_path, monkeypatch):
    assert not is_address("C:/data/a.csv")
    assert plain_name("file://localhost/a%20b.csv") == "/a b.csv"
    (tmp_path / "a b.csv").write_bytes(CSV)
    source = TableSource([f"file://{tmp_path}/*%20b.csv"])
    assert source.files == [f"{tmp_path}/a b.csv"]
    assert len(source.read(["text"])) == 2
    assert split_address(f"file://{tmp_path}/book.xlsx#March")[1] == "March"


def test_pages_that_differ_in_their_query_are_different_files():
    one, other = ("https://host/export?id=1", "https://host/export?id=2")
    assert identity_of(one) != identity_of(other)
    assert identity_of("s3://b/a.csv?region=x") == identity_of("s3://b/a.csv")


def test_schemes_that_need_another_package_name_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtra, match=r"memory://a.csv needs fsspec\. Install it: pip install 'quanet\[cloud\]'"):
        TableSource(["memory://a.csv"])


def test_fsspec_opens_what_pyarrow_was_built_without(memory, monkeypatch):
    def missing(*_):
        raise NotImplementedError("Got S3 URI but Arrow compiled without S3 support")

    monkeypatch.setattr("quanet.data.storage._native_system", missing)
    monkeypatch.setattr("fsspec.core.url_to_fs", lambda address: (memory, address.removeprefix("s3:/")))
    source = TableSource(["s3://shop/reviews/*.csv"])
    assert source.files == ["s3://shop/reviews/a.csv"]
    assert len(source.read(["text"])) == 2


def test_the_key_of_a_storage_account_comes_from_the_environment(monkeypatch):
    from quanet.data.storage import _with_environment

    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a/b")
    assert _with_environment("abfss", "box", "") == "abfss://box:a%2Fb@account.dfs.core.windows.net"
    local = "blob_storage_authority=127.0.0.1:9&dfs_storage_authority=127.0.0.1:9&enable_tls=false"
    with pytest.raises(InvalidData, match=r"^abfs://box/a\.csv cannot be read: .*Base64") as caught:
        TableSource([f"abfs://box/a.csv?{local}"])  # so the key is used; no request is sent
    assert "a/b" not in str(caught.value)
    assert _with_environment("gcs", "box", "") == "gs://box?retry_limit_seconds=10"
    for given in ("?sv=1&sig=x", "?credential_kind=anonymous"):  # the address takes precedence
        assert _with_environment("abfss", "box", given) == f"abfss://box@account.dfs.core.windows.net{given}"


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
