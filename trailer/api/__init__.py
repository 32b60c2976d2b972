"""What every REST endpoint shares: errors, authentication, paging, revisions."""
