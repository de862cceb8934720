"""Who owns which field of an object: field sets, server-side apply and managedFields."""
