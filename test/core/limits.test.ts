import { limits, projectQuotas } from '../../core/limits';

// What GET /v2/projects/{id}/usage reports, in its order.
const RESOURCES = [
  'applications',
  'previews',
  'databases',
  'database_storage_gb',
  'volumes',
  'volume_storage_gb',
  'buckets',
  'bucket_storage_bytes',
  'bucket_access_keys',
  'dns_zones',
  'cdn_zones',
  'email_domains',
  'email_relay_zones',
  'observers',
  'notifiers',
  'git_integrations',
  'shared_repositories',
  'registries',
  'robot_accounts',
  'runs',
  'schedules',
];

test('every resource of the usage answer has a limit', () => {
  expect(Object.keys(projectQuotas)).toEqual(RESOURCES);
  for (const limit of Object.values(projectQuotas)) expect(Number.isSafeInteger(limit) && limit > 0).toBe(true);
});

test('limits agree with one another', () => {
  expect(limits.pageSizeDefault).toBeLessThanOrEqual(limits.pageSizeMax);
  expect(limits.logPageSizeDefault).toBeLessThanOrEqual(limits.logPageSizeMax);
  expect(limits.volumeSizeMinGb).toBeLessThanOrEqual(limits.volumeSizeDefaultGb);
  expect(limits.volumeSizeDefaultGb).toBeLessThanOrEqual(limits.volumeSizeMaxGb);
  expect(limits.statementTimeoutMs).toBeLessThan(limits.requestTimeoutMs);
  expect(limits.headersTimeoutMs).toBeLessThan(limits.requestTimeoutMs);
});
