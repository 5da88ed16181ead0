// Errors with status 400: malformed requests.
import type { ErrorEntry } from './entry';

export const requestErrors = {
  malformed_json: {
    status: 400,
    title: 'Malformed JSON',
    meaning: 'The request body is not a valid JSON object.',
    remedy: 'Send a single JSON object in UTF-8.',
    retryable: false,
  },
  malformed_request: {
    status: 400,
    title: 'Malformed request',
    meaning: 'The path or the query of the request is malformed.',
    remedy: 'Check it for invalid percent-encoding, NUL characters and repeated query parameters.',
    retryable: false,
  },
  invalid_query_parameter: {
    status: 400,
    title: 'Invalid query parameter',
    meaning: 'A query parameter has an invalid value.',
    remedy: '`parameter` contains its name.',
    retryable: false,
  },
  invalid_cursor: {
    status: 400,
    title: 'Invalid cursor',
    meaning: 'The cursor is invalid, or it belongs to a list with another sort order or other filters.',
    remedy: 'Start again without a cursor.',
    retryable: false,
  },
  project_header_missing: {
    status: 400,
    title: 'Project header missing',
    meaning: 'With a personal key, this path requires the header X-Svc-Project.',
    remedy: 'Send the id of the project in it, or use the path below /v2/projects/{id}.',
    retryable: false,
  },
  query_too_complex: {
    status: 400,
    title: 'Query too complex',
    meaning: 'The GraphQL query exceeds a limit on depth, aliases, fields or cost.',
    remedy: 'Select fewer fields, or split it into several queries.',
    retryable: false,
  },
  graphql_invalid: {
    status: 400,
    title: 'Invalid GraphQL request',
    meaning: 'The GraphQL document or its variables do not match the schema.',
    remedy: '`detail` says where. Introspection returns the schema.',
    retryable: false,
  },
} as const satisfies Record<string, ErrorEntry>;
