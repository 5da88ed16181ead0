// Errors with status 429 and above: limits and failures of the service.
import type { ErrorEntry } from './entry';

export const serviceErrors = {
  rate_limited: {
    status: 429,
    title: 'Rate limit exceeded',
    meaning: 'The rate limit has been exceeded.',
    remedy: 'Wait for the number of seconds in `Retry-After`, then try again.',
    retryable: true,
  },
  headers_too_large: {
    status: 431,
    title: 'Headers too large',
    meaning: 'The request headers are too large.',
    remedy: 'Send fewer or shorter headers.',
    retryable: false,
  },
  internal_error: {
    status: 500,
    title: 'Internal error',
    meaning: 'An unexpected error occurred in the service.',
    remedy: 'Try again. If the error persists, contact the operator with the `request_id`.',
    retryable: true,
  },
  provider_error: {
    status: 502,
    title: 'Provider error',
    meaning: 'A Git provider or another remote system failed or could not be reached.',
    remedy: 'Try again later.',
    retryable: true,
  },
  service_unavailable: {
    status: 503,
    title: 'Service unavailable',
    meaning: 'The service is temporarily unavailable because of maintenance or overload.',
    remedy: 'Wait for the number of seconds in `Retry-After`, then try again.',
    retryable: true,
  },
} as const satisfies Record<string, ErrorEntry>;
