// Errors with status 401 and 403: authentication and authorisation.
import type { ErrorEntry } from './entry';

export const accessErrors = {
  token_missing: {
    status: 401,
    title: 'Token missing',
    meaning: 'The request contains no API key.',
    remedy: 'Send the header `Authorization: Bearer <key>`.',
    retryable: false,
  },
  token_invalid: {
    status: 401,
    title: 'Token invalid',
    meaning: 'The API key does not exist or has been revoked.',
    remedy: 'Check it for typing errors, or create a new key.',
    retryable: false,
  },
  token_expired: {
    status: 401,
    title: 'Token expired',
    meaning: 'The API key has expired.',
    remedy: 'Create a new key.',
    retryable: false,
  },
  session_required: {
    status: 401,
    title: 'Session required',
    meaning: 'This dashboard function requires a session.',
    remedy: 'Log in with your e-mail address and password first.',
    retryable: false,
  },
  credentials_invalid: {
    status: 401,
    title: 'Incorrect e-mail address or password',
    meaning: 'The e-mail address or the password is incorrect.',
    remedy: 'Check both and try again.',
    retryable: false,
  },
  two_factor_required: {
    status: 401,
    title: 'Two-factor code required',
    meaning: 'Logging in requires a valid two-factor code.',
    remedy: 'Send the current code from your authenticator app, or a recovery code.',
    retryable: false,
  },
  insufficient_scope: {
    status: 403,
    title: 'Insufficient scope',
    meaning: 'The personal key lacks a scope that this operation requires.',
    remedy: 'Use a key that has the scope in `required_scope`.',
    retryable: false,
  },
  destroy_not_allowed: {
    status: 403,
    title: 'Key may not delete',
    meaning: 'The API key may not delete or overwrite what cannot be made again.',
    remedy: 'Use a key that may delete, allow it on the page where the program logs in, or do it in the dashboard.',
    retryable: false,
  },
  approval_required: {
    status: 403,
    title: 'Approval required',
    meaning: 'The project requires that a second person approves this call.',
    remedy:
      'An owner approves or refuses it at `approval_url`. Then repeat exactly this call within an hour: it passes ' +
      'once.',
    retryable: false,
  },
  key_paused: {
    status: 403,
    title: 'Key paused',
    meaning: 'The API key destroyed too much within a minute and is paused.',
    remedy:
      'Find out who used it. Then let it go on in the list of keys of the dashboard or with `svc approve resume`, or ' +
      'revoke it.',
    retryable: false,
  },
  project_not_allowed: {
    status: 403,
    title: 'Project not allowed for this key',
    meaning: 'The API key has no access to this project.',
    remedy: 'It is restricted to other projects, or it is the key of another project.',
    retryable: false,
  },
  personal_key_required: {
    status: 403,
    title: 'Personal key required',
    meaning: 'This operation requires a personal key.',
    remedy: 'A project key cannot create or delete projects or share resources with other projects.',
    retryable: false,
  },
  role_not_permitted: {
    status: 403,
    title: 'Role not permitted',
    meaning: 'Your role in the project does not permit this operation.',
    remedy: 'It requires the role in `required_role`.',
    retryable: false,
  },
  not_owner_project: {
    status: 403,
    title: 'Not the owning project',
    meaning: 'The shared repository belongs to another project.',
    remedy: 'Only that project can change it.',
    retryable: false,
  },
  dashboard_only: {
    status: 403,
    title: 'Dashboard only',
    meaning: 'This function is not available to API keys.',
    remedy: 'Log in to the dashboard to use it.',
    retryable: false,
  },
  csrf_rejected: {
    status: 403,
    title: 'Cross-site request rejected',
    meaning: 'The request has a session but does not come from the dashboard.',
    remedy: 'Send it from the same origin with `Content-Type: application/json`.',
    retryable: false,
  },
  account_suspended: {
    status: 403,
    title: 'Account suspended',
    meaning: 'The account is suspended.',
    remedy: 'Contact the operator of the platform.',
    retryable: false,
  },
  quota_exceeded: {
    status: 403,
    title: 'Quota exceeded',
    meaning: 'The request would exceed a quota of the project or of its parent resource.',
    remedy:
      '`resource`, `used` and `limit` describe the quota. Delete resources, or ask the operator to raise the ' +
      'limit in `QUOTAS`.',
    retryable: false,
  },
} as const satisfies Record<string, ErrorEntry>;
