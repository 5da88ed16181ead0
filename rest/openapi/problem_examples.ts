// Examples of problem documents: one for each code, with the members that the code brings.
import { problem, toDocument, type ErrorCode } from '../../core/errors';
import type { DocumentBuilder } from './builder';
import type { Ref } from './document';

const ID = '01h455vb4pex5vsknk084sn02q';
const MEMBERS: Partial<Record<ErrorCode, Record<string, unknown>>> = {
  validation_failed: { errors: [{ field: 'source.branch', code: 'required', detail: 'is required' }] },
  invalid_query_parameter: { parameter: 'limit' },
  insufficient_scope: { required_scope: 'applications:write', token_scopes: ['applications:read'] },
  role_not_permitted: { required_role: 'admin' },
  approval_required: {
    approval_id: `apr_${ID}`,
    approval_url: `https://platform.example.com/projects/prj_${ID}/approvals/apr_${ID}`,
  },
  quota_exceeded: { resource: 'applications', used: 50, limit: 50 },
  name_taken: { field: 'name' },
  reference_not_found: { field: 'registry_id' },
  already_exists: { resource_id: `app_${ID}` },
  invalid_state: { resource_status: 'stopped', allowed_statuses: ['running'] },
  resource_busy: { resource_status: 'provisioning' },
  resource_in_use: { dependents: [{ type: 'application', id: `app_${ID}`, name: 'shop' }] },
  deletion_protected: { protected_by: `app_${ID}` },
  not_revertible: { reason: 'expired' },
  plan_outdated: { moved: ['application shop'] },
  stack_refused: {
    refusals: [
      {
        ...{ type: 'database', name: 'main', path: 'databases.main', line: 2, operation_id: 'createDatabase' },
        ...{ code: 'quota_exceeded', detail: 'The project may have 20 databases.' },
      },
    ],
  },
  project_not_empty: { resources: [{ resource: 'applications', count: 2 }] },
  env_key_conflict: { keys: ['DATABASE_URL'] },
  env_key_managed: { managed_by: `dba_${ID}` },
  capacity_unavailable: { regions: ['local'] },
  payload_too_large: { limit_bytes: 1_048_576 },
  volume_size_must_increase: { current_size_gb: 10, requested_size_gb: 5 },
  volume_size_out_of_range: { min_gb: 1, max_gb: 1_000 },
  scale_out_of_range: { max_instances: 20 },
  engine_feature_unsupported: { engine: 'redis', feature: 'replicas' },
  engine_version_unsupported: { available_versions: ['17', '18'] },
  point_in_time_unavailable: { earliest: '2026-01-24T09:30:00.000Z', latest: '2026-01-31T09:30:00.000Z' },
  record_invalid: {
    record_errors: [{ field: 'value', code: 'invalid_format', detail: 'must be an IPv4 address' }],
  },
  zone_file_invalid: { line: 12 },
};

/** References to problem examples by error code, in the order of `codes`. */
export function problemExamples(builder: DocumentBuilder, codes: readonly ErrorCode[]): Record<string, Ref> {
  const about = {
    base_url: 'https://api.example.com',
    request_id: `req_${ID}`,
    instance: `/v2/applications/app_${ID}`,
  };
  const make = (code: ErrorCode) => () => ({ value: toDocument(problem(code, undefined, MEMBERS[code]), about) });
  return Object.fromEntries(codes.map((code) => [code, builder.use('examples', `problem.${code}`, make(code))]));
}
