// Every error that a client can see, in the order of its status. Served by GET /v2/errors.

export interface ErrorEntry {
  readonly status: number;
  readonly title: string;
  /** When it comes and what to do. The first sentence is the default `detail` of a problem document. */
  readonly description: string;
  /** The same request may succeed later without a change. */
  readonly retryable: boolean;
}

export const errors = {
  malformed_json: {
    status: 400,
    title: 'Malformed JSON',
    retryable: false,
    description: 'The request body is not JSON or not a JSON object. Send one object in UTF-8.',
  },
  malformed_request: {
    status: 400,
    title: 'Malformed request',
    retryable: false,
    description:
      'The request cannot be read. The path or query has a broken percent-encoding, a NUL character or the same query parameter twice.',
  },
  invalid_query_parameter: {
    status: 400,
    title: 'Invalid query parameter',
    retryable: false,
    description:
      'A query parameter has a value that is not allowed. The member parameter names it; correct limit, sort, filter, time or range.',
  },
  invalid_cursor: {
    status: 400,
    title: 'Invalid cursor',
    retryable: false,
    description:
      'The cursor was altered, or it belongs to another sort order or other filters. Start again without a cursor.',
  },
  project_header_missing: {
    status: 400,
    title: 'Project header missing',
    retryable: false,
    description:
      'A personal key must name the project of this path. Send the header X-Svc-Project, or use the path below /v2/projects/{id}.',
  },
  query_too_complex: {
    status: 400,
    title: 'Query too complex',
    retryable: false,
    description:
      'The GraphQL query passes a limit on depth, aliases, fields or cost. Ask for less, or split it into several queries.',
  },
  graphql_invalid: {
    status: 400,
    title: 'Invalid GraphQL request',
    retryable: false,
    description:
      'The GraphQL document or its variables do not fit the schema. The detail says where; introspection shows the schema.',
  },
  token_missing: {
    status: 401,
    title: 'Token missing',
    retryable: false,
    description: 'The request carries no usable key. Send the header Authorization with the value Bearer and your key.',
  },
  token_invalid: {
    status: 401,
    title: 'Token invalid',
    retryable: false,
    description: 'The key is unknown or was revoked. Check it for typing mistakes, or create a new one.',
  },
  token_expired: {
    status: 401,
    title: 'Token expired',
    retryable: false,
    description: 'The key is past its expiry date. Create a new one.',
  },
  session_required: {
    status: 401,
    title: 'Session required',
    retryable: false,
    description: 'This dashboard function needs a session. Log in with e-mail and password first.',
  },
  credentials_invalid: {
    status: 401,
    title: 'E-mail or password wrong',
    retryable: false,
    description:
      'The log-in names no user, or the password is not theirs; which of both is not told. Check them and try again.',
  },
  two_factor_required: {
    status: 401,
    title: 'Two-factor code required',
    retryable: false,
    description:
      'The login needs a valid two-factor code. Send the current code of your authenticator, or a recovery code.',
  },
  insufficient_scope: {
    status: 403,
    title: 'Insufficient scope',
    retryable: false,
    description:
      'The personal key lacks the scope that this operation needs. The member required_scope names it; use a key that has it.',
  },
  project_not_allowed: {
    status: 403,
    title: 'Project not allowed for this key',
    retryable: false,
    description:
      'The key may not act on this project. It is limited to certain projects, or it is the key of another project.',
  },
  personal_key_required: {
    status: 403,
    title: 'Personal key required',
    retryable: false,
    description:
      'A project key cannot do this. Creating and deleting projects and sharing with other projects need a personal key.',
  },
  role_not_permitted: {
    status: 403,
    title: 'Role does not permit this',
    retryable: false,
    description: 'Your role in the project does not allow this. The member required_role names the role that does.',
  },
  not_owner_project: {
    status: 403,
    title: 'Not the owning project',
    retryable: false,
    description: 'The shared repository belongs to another project. Only the owning project may change it.',
  },
  dashboard_only: {
    status: 403,
    title: 'Dashboard only',
    retryable: false,
    description: 'API keys cannot call this function. Log in to the dashboard and use it there.',
  },
  csrf_rejected: {
    status: 403,
    title: 'Cross-site request rejected',
    retryable: false,
    description:
      'The request came with a session but not from the dashboard. Send it from the same origin, with Content-Type application/json.',
  },
  account_suspended: {
    status: 403,
    title: 'Account suspended',
    retryable: false,
    description: 'The account of the key is suspended. Ask whoever runs the platform.',
  },
  quota_exceeded: {
    status: 403,
    title: 'Quota exceeded',
    retryable: false,
    description:
      'This would pass a limit of the project or of its parent. The members resource, used and limit say which; delete something, or ask for a higher limit.',
  },
  not_found: {
    status: 404,
    title: 'Resource not found',
    retryable: false,
    description: 'The path names nothing in the selected project. Check the id and the project.',
  },
  project_not_found: {
    status: 404,
    title: 'Project not found',
    retryable: false,
    description: 'The header or path names no project that you are a member of. GET /v2/me/projects lists yours.',
  },
  route_not_found: {
    status: 404,
    title: 'Route not found',
    retryable: false,
    description: 'No operation has this path. The description at /v2/openapi.yaml lists all of them.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    retryable: false,
    description: 'The path exists, but not with this method. The header Allow lists those that it has.',
  },
  not_acceptable: {
    status: 406,
    title: 'Not acceptable',
    retryable: false,
    description:
      'The header Accept excludes every media type that this operation answers with. Accept application/json.',
  },
  request_timeout: {
    status: 408,
    title: 'Request timed out',
    retryable: true,
    description: 'The request did not arrive completely in time. Send it again.',
  },
  name_taken: {
    status: 409,
    title: 'Name already taken',
    retryable: false,
    description: 'Another resource has this name. The member field says which name; choose another.',
  },
  domain_taken: {
    status: 409,
    title: 'Domain already taken',
    retryable: false,
    description:
      'The host name or zone is registered elsewhere on the platform. Remove it there first, or prove that it is yours to support.',
  },
  already_exists: {
    status: 409,
    title: 'Already exists',
    retryable: false,
    description: 'The same thing exists already. The member resource_id names it, where it has an id.',
  },
  invalid_state: {
    status: 409,
    title: 'Not possible in this state',
    retryable: false,
    description:
      'The present status of the resource does not allow this. The members resource_status and allowed_statuses say what it is and what it must be.',
  },
  resource_busy: {
    status: 409,
    title: 'Resource is busy',
    retryable: true,
    description:
      'Another change of the resource is under way. The member resource_status names it; try again when it has settled.',
  },
  resource_in_use: {
    status: 409,
    title: 'Resource in use',
    retryable: false,
    description: 'Something depends on the resource. The member dependents lists what; detach or delete that first.',
  },
  resource_protected: {
    status: 409,
    title: 'Resource is protected',
    retryable: false,
    description: 'The resource is a fixed part of its parent and cannot be removed alone.',
  },
  deletion_protected: {
    status: 409,
    title: 'Deletion protection is on',
    retryable: false,
    description: 'The database has deletion protection. Set deletion_protection to false first.',
  },
  project_not_empty: {
    status: 409,
    title: 'Project not empty',
    retryable: false,
    description: 'The project still holds resources. The member resources counts them; delete them first.',
  },
  bucket_not_empty: {
    status: 409,
    title: 'Bucket not empty',
    retryable: false,
    description: 'The bucket still holds objects or versions of objects. Delete them first.',
  },
  record_conflict: {
    status: 409,
    title: 'Conflicting DNS records',
    retryable: false,
    description:
      'A CNAME cannot stand beside other records of the same name. Remove the others, or choose another name.',
  },
  env_key_conflict: {
    status: 409,
    title: 'Variable already set',
    retryable: false,
    description:
      'The attachment would overwrite a variable. The member keys lists them; choose another prefix, or delete them.',
  },
  env_key_managed: {
    status: 409,
    title: 'Variable is managed',
    retryable: false,
    description:
      'The variable belongs to an attachment. The member managed_by names it; change or remove the attachment instead.',
  },
  mount_path_taken: {
    status: 409,
    title: 'Mount path taken',
    retryable: false,
    description: 'Another volume of the application uses this mount path. Choose another.',
  },
  deployment_not_rollbackable: {
    status: 409,
    title: 'Cannot roll back to it',
    retryable: false,
    description: 'The deployment was never active, or its image is gone. Choose one whose rollback_possible is true.',
  },
  backup_not_ready: {
    status: 409,
    title: 'Backup not ready',
    retryable: false,
    description: 'The backup is not completed. Wait until its status is completed.',
  },
  capacity_unavailable: {
    status: 409,
    title: 'No capacity in the region',
    retryable: true,
    description:
      'The region is closed, does not offer the size, or has no room for it now. The member regions lists where it fits.',
  },
  engine_unavailable: {
    status: 409,
    title: 'Engine not available',
    retryable: false,
    description: 'This installation lacks the engine or the capability. The detail says what to install.',
  },
  idempotency_in_progress: {
    status: 409,
    title: 'Same request in progress',
    retryable: true,
    description: 'A request with the same Idempotency-Key is still being worked on. Wait a moment and send it again.',
  },
  precondition_failed: {
    status: 412,
    title: 'Precondition failed',
    retryable: false,
    description: 'The resource has changed since you read it. Read it again and send its new ETag in If-Match.',
  },
  payload_too_large: {
    status: 413,
    title: 'Payload too large',
    retryable: false,
    description: 'The request body is larger than allowed. The member limit_bytes says how large it may be.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    retryable: false,
    description: 'The request body is not declared as JSON. Send Content-Type application/json.',
  },
  validation_failed: {
    status: 422,
    title: 'Validation failed',
    retryable: false,
    description:
      'Fields of the request break their rules. The member errors lists every one with its path, a code and a text.',
  },
  reference_not_found: {
    status: 422,
    title: 'Referenced resource not found',
    retryable: false,
    description: 'An id or slug in the request names nothing that can be used. The member field says which.',
  },
  region_mismatch: {
    status: 422,
    title: 'Regions differ',
    retryable: false,
    description: 'The volume and the application are in different regions. Use one in the same region.',
  },
  volume_size_must_increase: {
    status: 422,
    title: 'Volume size must increase',
    retryable: false,
    description:
      'size_gb must be greater than the present size. Volumes never shrink; the members current_size_gb and requested_size_gb show both.',
  },
  volume_size_out_of_range: {
    status: 422,
    title: 'Volume size out of range',
    retryable: false,
    description:
      'size_gb is outside the limits of the region. The members min_gb and max_gb give them, and so does GET /v2/volume_size_limits.',
  },
  storage_must_increase: {
    status: 422,
    title: 'Storage must increase',
    retryable: false,
    description: 'storage_gb of a database only grows. Send a value above the present one.',
  },
  scale_out_of_range: {
    status: 422,
    title: 'Scale out of range',
    retryable: false,
    description:
      'The size does not allow so many instances. The member max_instances gives its limit; scale lower, or choose a larger size.',
  },
  source_not_configured: {
    status: 422,
    title: 'Source not configured',
    retryable: false,
    description: 'The application has no source that fits this. Set its source first.',
  },
  env_key_reserved: {
    status: 422,
    title: 'Variable name reserved',
    retryable: false,
    description: 'PORT and names that start with SVC_ are set by the platform. Choose another name.',
  },
  engine_feature_unsupported: {
    status: 422,
    title: 'Engine does not support this',
    retryable: false,
    description:
      'The database engine lacks this feature. The members engine and feature say which; GET /v2/databases/engines lists what each can do.',
  },
  engine_version_unsupported: {
    status: 422,
    title: 'Engine version not supported',
    retryable: false,
    description:
      'The version is unknown, older than the present one, or cannot be reached from it. The member available_versions lists those that can.',
  },
  point_in_time_unavailable: {
    status: 422,
    title: 'Point in time unavailable',
    retryable: false,
    description: 'The moment lies outside what can be restored. The members earliest and latest give the window.',
  },
  record_invalid: {
    status: 422,
    title: 'DNS record invalid',
    retryable: false,
    description:
      'The value or the numbers do not fit the type of the record. The member record_errors says what is wrong.',
  },
  zone_file_invalid: {
    status: 422,
    title: 'Zone file invalid',
    retryable: false,
    description: 'The zone file cannot be read. The member line says where it fails.',
  },
  policy_invalid: {
    status: 422,
    title: 'Bucket policy invalid',
    retryable: false,
    description: 'The bucket policy has an unknown action, principal or pattern. The detail says which.',
  },
  domain_not_verified: {
    status: 422,
    title: 'Email domain not verified',
    retryable: false,
    description: 'A relay zone can only send for verified email domains. Verify the domain first.',
  },
  provider_auth_failed: {
    status: 422,
    title: 'Git provider refused the credentials',
    retryable: false,
    description:
      'The Git provider does not accept the token. Send one that is valid and has access to the repositories.',
  },
  idempotency_key_reused: {
    status: 422,
    title: 'Idempotency key reused',
    retryable: false,
    description: 'The Idempotency-Key was used with another request. Take a new key for every new request.',
  },
  rate_limited: {
    status: 429,
    title: 'Rate limit exceeded',
    retryable: true,
    description: 'The account has used up its calls for now. Wait for the seconds in Retry-After.',
  },
  headers_too_large: {
    status: 431,
    title: 'Headers too large',
    retryable: false,
    description: 'The request headers are larger than the server accepts. Send fewer or shorter ones.',
  },
  internal_error: {
    status: 500,
    title: 'Internal error',
    retryable: true,
    description: 'Something went wrong on our side. Try again; if it stays, quote the request_id to support.',
  },
  provider_error: {
    status: 502,
    title: 'Upstream provider failed',
    retryable: true,
    description: 'A Git provider or another remote system could not be reached or failed. Try again later.',
  },
  service_unavailable: {
    status: 503,
    title: 'Service unavailable',
    retryable: true,
    description:
      'The service cannot answer now, because of maintenance or overload. Wait for the seconds in Retry-After.',
  },
} as const satisfies Record<string, ErrorEntry>;
