"""The default gate of the API: signed in, and the token's scope covers the method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.permissions import SAFE_METHODS, BasePermission

from trailer import policy
from trailer.accounts.models import ApiToken, TokenScope

if TYPE_CHECKING:
    from rest_framework.request import Request


class SignedInWithScope(BasePermission):
    message = "This token may only read. Use one with the scope write."

    def has_permission(self, request: Request, view: Any) -> bool:
        if not (request.user.is_authenticated and request.user.is_active):
            return False
        token = request.auth
        if isinstance(token, ApiToken) and token.scope == TokenScope.READ:
            return request.method in SAFE_METHODS
        return True


class AdminScopeToChange(BasePermission):
    """For what everybody may read and admins change: a token needs the scope for everything."""

    message = "Changing this takes a token of the scope admin."

    def has_permission(self, request: Request, view: Any) -> bool:
        token = request.auth
        if request.method in SAFE_METHODS or not isinstance(token, ApiToken):
            return True
        return token.scope == TokenScope.ADMIN


class AdminOnly(BasePermission):
    """For what only admins may see; a token needs the scope for everything."""

    message = "Only administrators may do this, and only with a token of the scope admin."

    def has_permission(self, request: Request, view: Any) -> bool:
        token = request.auth
        if isinstance(token, ApiToken) and token.scope != TokenScope.ADMIN:
            return False
        return policy.allows(request.user, "user.view")
