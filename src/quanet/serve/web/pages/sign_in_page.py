"""The page to sign in."""

from fastapi import Request
from fastapi.responses import Response

from quanet.serve.web.pages.page_access import go, router
from quanet.serve.web.pages.rendering import show


@router.get("/sign-in")
def sign_in(request: Request, next: str = "/", failed: bool = False) -> Response:  # noqa: A002
    """Ask for a token."""
    if not request.app.state.settings.sign_in:
        return go("/")
    error = "This token is not known. Check that you copied all of it." if failed else ""
    return show(request, "sign_in.html", next=next, error=error, status=401 if failed else 200)
