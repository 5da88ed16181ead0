import {
  errors,
  invalidQuery,
  problem,
  Problem,
  toDocument,
  validationFailed,
  type ErrorCode,
  type ErrorEntry,
} from '../../core/errors';

const about = { base_url: 'https://api.example.com', request_id: 'req_1', instance: '/v2/volumes' };
const table = Object.entries<ErrorEntry>(errors);

/** Of operations beyond the specification. */
const OF_EXTENSIONS = [
  ...['archive_invalid', 'destroy_not_allowed', 'approval_required', 'key_paused', 'not_revertible'],
  ...['plan_outdated', 'stack_refused'],
  'promotion_not_possible',
];

test('the table has the codes of the contract, and those of extensions', () => {
  expect(table.map(([code]) => code)).toEqual(expect.arrayContaining(OF_EXTENSIONS));
  expect(table).toHaveLength(74 + OF_EXTENSIONS.length);
});

test.each(table)('%s is complete', (code, entry) => {
  expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
  expect(entry.status).toBeGreaterThanOrEqual(400);
  expect(entry.status).toBeLessThan(600);
  expect(entry.title).toMatch(/^[A-Z].*[^.]$/);
  // One sentence that stands alone as the detail, and one or two that say what to do.
  expect(entry.meaning).toMatch(/^[A-Z`](?!.*\. [A-Z`]).*\.$/);
  expect(entry.remedy).toMatch(/^\S.*\.$/);
});

test('the table is in the order of status', () => {
  const statuses = table.map(([, entry]) => entry.status);
  expect(statuses).toEqual([...statuses].sort((a, b) => a - b));
});

test('what the contract calls retryable is', () => {
  for (const code of [
    'resource_busy',
    'rate_limited',
    'internal_error',
    'provider_error',
    'service_unavailable',
    'capacity_unavailable',
  ] as const) {
    expect(errors[code].retryable).toBe(true);
  }
  expect(errors.validation_failed.retryable).toBe(false);
});

test('a problem carries status, members and headers, and has the meaning of its code as detail by default', () => {
  const thrown = problem('method_not_allowed', undefined, {}, { Allow: 'GET' });
  expect(thrown).toBeInstanceOf(Problem);
  expect(thrown).toBeInstanceOf(Error);
  expect(thrown).toMatchObject({ code: 'method_not_allowed', status: 405, headers: { Allow: 'GET' } });
  expect(thrown.detail).toBe(errors.method_not_allowed.meaning);
  expect(thrown.message).toBe(thrown.detail);
});

test('the document is RFC 9457 with the platform members', () => {
  const p = problem('quota_exceeded', 'The project may have 5 volumes.', { resource: 'volumes', used: 5, limit: 5 });
  expect(toDocument(p, about)).toEqual({
    type: 'https://api.example.com/v2/errors/quota_exceeded',
    title: 'Quota exceeded',
    status: 403,
    detail: 'The project may have 5 volumes.',
    instance: '/v2/volumes',
    code: 'quota_exceeded',
    request_id: 'req_1',
    retryable: false,
    resource: 'volumes',
    used: 5,
    limit: 5,
  });
});

test('no extra member replaces a standard one', () => {
  const p = new Problem('resource_busy', 'Busy.', { status: 'resizing', code: 'other' }, {});
  expect(toDocument(p, about)).toMatchObject({ status: 409, code: 'resource_busy' });
});

test('every code can be rendered', () => {
  for (const [code, entry] of table) {
    expect(toDocument(problem(code as ErrorCode), about)).toMatchObject({
      code,
      status: entry.status,
      retryable: entry.retryable,
    });
  }
});

test('field errors and query errors have their members', () => {
  const errorsOfBody = [
    { field: 'source.branch', code: 'too_long' as const, detail: 'must have at most 255 characters' },
  ];
  expect(validationFailed(errorsOfBody)).toMatchObject({ status: 422, members: { errors: errorsOfBody } });
  expect(invalidQuery('limit', 'limit must be positive.')).toMatchObject({
    status: 400,
    code: 'invalid_query_parameter',
    members: { parameter: 'limit' },
  });
});
