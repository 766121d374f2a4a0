"""Pages of the service: they read rows and stored answers, and render templates."""

from quanet.serve.web.pages.page_routes import error_page as error_page
from quanet.serve.web.pages.page_routes import router as router
