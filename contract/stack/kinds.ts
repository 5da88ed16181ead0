// What a file of a project (docs/decisions/0253) can say: its sections, and the operations that make them so. Which
// fields a section has, and their bounds, is said by the inputs of these operations.

type Values = Record<string, unknown>;

/** An operation that changes some fields of what exists. */
interface StackUpdate {
  operation: string;
  fields?: readonly string[];
  /** What the operation is called with, where that is not the fields that differ. */
  input?(desired: Values, changed: Values): Values;
}

export interface StackKind {
  /** As the models name it. */
  type: string;
  /** Key of the section, at the top of the file or of an application. */
  section: string;
  /** Below an application. */
  isChild: boolean;
  /** Field that the key of an entry stands for; null where the section is one thing. */
  key: string | null;
  create: string | null;
  updates: readonly StackUpdate[];
  delete: string | null;
  /** Argument with the id of a child, beside that of its application in `id`. */
  childId?: string;
  /** The key is an argument of the operations, not a field of the input. */
  isKeyed?: true;
  /** Fields of the input of `create` that a file does not have. */
  omitted?: readonly string[];
  /** Fields of a file that name another entry: the field of the input, and the kind. */
  references?: Readonly<Record<string, { field: string; type: string }>>;
  /** Deleted only where its name is confirmed. */
  holdsData?: true;
  /** What has to be changed in one that is used before it can be deleted. */
  release?: { operation: string; input: Values };
  /** Deletes nothing that is called so. */
  keeps?: string;
}

/** In the order in which they are created: what others refer to comes first. */
export const STACK_KINDS: readonly StackKind[] = [
  {
    ...{ type: 'database', section: 'databases', isChild: false, key: 'name', holdsData: true },
    ...{ create: 'createDatabase', delete: 'deleteDatabase' },
    updates: [{ operation: 'updateDatabase' }, { operation: 'upgradeDatabase' }],
    omitted: ['restore_from', 'copy_of', 'mask'],
  },
  {
    ...{ type: 'bucket', section: 'buckets', isChild: false, key: 'name', holdsData: true },
    ...{ create: 'createBucket', updates: [{ operation: 'updateBucket' }], delete: 'deleteBucket' },
  },
  {
    ...{ type: 'application', section: 'applications', isChild: false, key: 'name' },
    ...{ create: 'createApplication', updates: [{ operation: 'updateApplication' }], delete: 'deleteApplication' },
    omitted: ['preset'],
  },
  {
    ...{ type: 'application_settings', section: 'settings', isChild: true, key: null },
    ...{ create: null, updates: [{ operation: 'updateApplicationSettings' }], delete: null },
  },
  {
    ...{ type: 'process', section: 'processes', isChild: true, key: 'type', childId: 'process_id', keeps: 'web' },
    ...{ create: 'createProcess', delete: 'deleteProcess' },
    updates: [
      { operation: 'updateProcess', fields: ['command', 'application_type'] },
      {
        ...{ operation: 'scaleProcess', fields: ['instances', 'autoscaling'] },
        input: ({ autoscaling, instances }) => (autoscaling ? { autoscaling } : { instances }),
      },
    ],
  },
  {
    ...{ type: 'volume', section: 'volumes', isChild: false, key: 'name', holdsData: true },
    ...{ create: 'createVolume', delete: 'deleteVolume' },
    updates: [
      {
        operation: 'updateVolume',
        // The two belong together.
        input: ({ application_id, mount_path }, changed) =>
          'application_id' in changed || 'mount_path' in changed
            ? { ...changed, application_id, mount_path: application_id === null ? null : mount_path }
            : changed,
      },
    ],
    references: { application: { field: 'application_id', type: 'application' } },
    release: { operation: 'updateVolume', input: { application_id: null, mount_path: null } },
  },
  {
    // Written as variables: `DATABASE_URL: ${database.main.url}`.
    ...{ type: 'database_attachment', section: '', isChild: true, key: 'env_prefix', childId: 'attachment_id' },
    ...{ create: 'createDatabaseAttachment', updates: [], delete: 'deleteDatabaseAttachment' },
  },
  {
    ...{ type: 'environment_variable', section: 'variables', isChild: true, key: 'key', isKeyed: true },
    ...{ create: 'setEnvironmentVariable', delete: 'deleteEnvironmentVariable' },
    updates: [
      {
        operation: 'setEnvironmentVariable',
        input: ({ value, available_at }) => ({ value, ...(available_at !== undefined && { available_at }) }),
      },
    ],
  },
  {
    ...{ type: 'schedule', section: 'schedules', isChild: true, key: 'name', childId: 'schedule_id' },
    ...{ create: 'createSchedule', updates: [{ operation: 'updateSchedule' }], delete: 'deleteSchedule' },
  },
  {
    ...{ type: 'domain', section: 'domains', isChild: true, key: 'hostname', childId: 'domain_id' },
    ...{ create: 'addApplicationDomain', delete: 'removeApplicationDomain' },
    updates: [{ operation: 'moveApplicationDomain', fields: ['application_id'] }],
  },
];

/** @throws Error for a kind that no file has */
export function stackKind(type: string): StackKind {
  const found = STACK_KINDS.find((kind) => kind.type === type);
  if (!found) throw new Error(`no part of a stack is a ${type}`);
  return found;
}

/** Parts of the variables that an attachment of a database gives, as references name them. */
export const ATTACHMENT_PARTS = ['url', 'host', 'port', 'user', 'password', 'name'] as const;
