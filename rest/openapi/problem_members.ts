// Members of problem documents beyond those that each has, and the codes that bring them.
import type { GraphQLObjectType } from 'graphql';
import type { ErrorCode } from '../../core/errors';
import type { DocumentBuilder } from './builder';
import type { Schema } from './document';
import { dependentRef, fieldErrorRef, integerSchema, resourceCountRef, textSchema } from './problem_parts';
import { answerSchema } from './schemas';

interface Member {
  codes: ErrorCode[];
  schema: Schema;
  /** Whether each document of these codes has it. */
  always?: true;
}

type Members = Record<string, Member>;

const member = (codes: ErrorCode[], schema: Schema): Member => ({ codes, schema });
const texts = (description: string): Schema => ({ type: 'array', items: { type: 'string' }, description });
const moment = (description: string): Schema => ({ type: 'string', format: 'date-time', description });

/** By name. */
export function problemMembers(builder: DocumentBuilder): Members {
  return { ...bodyMembers(builder), ...accessMembers(), ...stateMembers(builder), ...possibleMembers(builder) };
}

function bodyMembers(builder: DocumentBuilder): Members {
  const errors = { type: 'array', items: fieldErrorRef(builder), description: 'All errors in the body.' };
  const named: ErrorCode[] = [
    ...(['name_taken', 'already_exists', 'reference_not_found', 'domain_taken', 'domain_not_verified'] as const),
    'mount_path_taken',
  ];
  const batch: ErrorCode[] = ['env_key_reserved', 'env_key_managed', 'precondition_failed'];
  return {
    errors: { ...member(['validation_failed'], errors), always: true },
    parameter: { ...member(['invalid_query_parameter'], textSchema('Name of the query parameter.')), always: true },
    field: member(named, textSchema('Path of the field in the body.')),
    keys: member(['env_key_conflict', ...batch], texts('Variables that are already set, or that cannot be changed.')),
    fields: member(batch, texts('Paths of these variables in the body.')),
  };
}

function accessMembers(): Members {
  return {
    required_scope: member(['insufficient_scope'], textSchema('Scope that the operation requires.')),
    token_scopes: member(['insufficient_scope'], texts('Scopes of the key.')),
    required_role: member(['role_not_permitted'], textSchema('Lowest role that may call the operation.')),
    approval_id: member(['approval_required'], textSchema('Id of the approval.')),
    approval_url: member(['approval_required'], textSchema('Page on which an owner decides.')),
    resource: member(['quota_exceeded'], textSchema('Name of the quota.')),
    used: member(['quota_exceeded'], integerSchema('Current usage.')),
    limit: member(['quota_exceeded'], integerSchema('Limit.')),
  };
}

function stateMembers(builder: DocumentBuilder): Members {
  const states: ErrorCode[] = ['invalid_state', 'resource_busy', 'backup_not_ready'];
  const dependents = {
    type: 'array',
    items: dependentRef(builder),
    description: 'Resources that depend on the resource.',
  };
  const resources = {
    type: 'array',
    items: resourceCountRef(builder),
    description: 'Resources that the project still contains.',
  };
  return {
    resource_id: member(['already_exists'], textSchema('Id of the existing resource.')),
    resource_status: member(states, textSchema('Current status of the resource.')),
    allowed_statuses: member(['invalid_state'], texts('Statuses that allow the operation.')),
    dependents: member(['resource_in_use'], dependents),
    resources: member(['project_not_empty'], resources),
    reason: member(['not_revertible'], textSchema('Why not, as in `revert_obstacle` of the entry.')),
    conflicts: member(['precondition_failed'], conflictsSchema(builder)),
    moved: member(['plan_outdated'], texts('What was changed, each with its kind.')),
    refusals: member(['stack_refused'], refusalsSchema(builder)),
    protected_by: member(['deletion_protected'], textSchema('Id of what is protected: the resource, or its project.')),
    managed_by: member(['env_key_managed'], textSchema('Id of the attachment.')),
    regions: member(['capacity_unavailable'], texts('Regions that have capacity.')),
  };
}

/** Members that say what would have been possible. */
function possibleMembers(builder: DocumentBuilder): Members {
  return {
    limit_bytes: member(['payload_too_large'], integerSchema('Maximum size of the body in bytes.')),
    current_size_gb: member(['volume_size_must_increase'], integerSchema('Current size.')),
    requested_size_gb: member(['volume_size_must_increase'], integerSchema('Requested size.')),
    min_gb: member(['volume_size_out_of_range'], integerSchema('Minimum size.')),
    max_gb: member(['volume_size_out_of_range'], integerSchema('Maximum size.')),
    max_instances: member(['scale_out_of_range'], integerSchema('Maximum number of instances.')),
    engine: member(['engine_feature_unsupported'], textSchema('Name of the engine.')),
    feature: member(['engine_feature_unsupported'], textSchema('Name of the feature.')),
    available_versions: member(['engine_version_unsupported'], texts('Possible versions.')),
    earliest: member(['point_in_time_unavailable'], moment('Earliest possible point in time.')),
    latest: member(['point_in_time_unavailable'], moment('Latest possible point in time.')),
    record_errors: member(['record_invalid'], recordErrors(builder)),
    line: member(['zone_file_invalid'], integerSchema('Number of the line that cannot be parsed.')),
  };
}

function refusalsSchema(builder: DocumentBuilder): Schema {
  const type = builder.schema.getType('StackRefusal') as GraphQLObjectType;
  return { type: 'array', items: answerSchema(builder, type), description: 'What is refused.' };
}

function conflictsSchema(builder: DocumentBuilder): Schema {
  const items = builder.use('schemas', 'RevertConflict', () => ({
    type: 'object',
    description: 'What has changed since the change that should be reverted.',
    properties: {
      type: textSchema('Kind of the resource.'),
      id: { type: ['string', 'null'], description: 'Id of the resource.' },
      field: { type: ['string', 'null'], description: 'Dotted path; `null`: whether the resource exists.' },
      expected: { description: 'Value that the change left. Absent where the caller may not read it.' },
      current: { description: 'Value now. Absent where the caller may not read it.' },
    },
    required: ['type', 'id', 'field'],
  }));
  return { type: 'array', items, description: 'Of a revert: what has changed meanwhile.' };
}

function recordErrors(builder: DocumentBuilder): Schema {
  const items = builder.use('schemas', 'RecordError', () => ({
    type: 'object',
    description: 'An error in a DNS record.',
    properties: {
      index: integerSchema('Position in the list; absent for a single record.'),
      field: textSchema('Dotted path of the field.'),
      code: textSchema('As in `errors`.'),
      detail: textSchema('What is wrong.'),
    },
    required: ['field', 'code', 'detail'],
  }));
  return { type: 'array', items, description: 'Every error of the records in the body.' };
}
