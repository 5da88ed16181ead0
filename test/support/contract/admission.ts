// Who may call what: the rules of the specification, written a second time and apart from the guard. The access tests
// hold both faces against this.
import type { Actor } from './actors';
import { projectSource, type PublishedOperation } from './table';

/**
 * The code that refuses the actor before the request itself is looked at; null = admitted.
 * @param pathProject the project in the path, for operations that have one there
 */
export function refusal(operation: PublishedOperation, actor: Actor, pathProject: string): string | null {
  if (operation.scope === 'none') return null;
  if (actor.refused) return actor.refused;
  if ([operation.scope, ALSO[operation.id] ?? 'any'].some((scope) => lacksScope(scope, actor)))
    return 'insufficient_scope';
  if (actor.mayDestroy === false && destroys(operation)) return 'destroy_not_allowed';
  const source = projectSource(operation);
  if (source === 'none') return refusedEverywhere(operation, actor);
  const project = source === 'path' ? pathProject : actor.header;
  return refusedProject(project, actor) ?? refusedEverywhere(operation, actor) ?? refusedRole(operation, actor);
}

/** Whose answer holds a secret, or whose input runs code: they need a scope beside that of the table. */
const ALSO: Record<string, string> = {
  createDatabaseUser: 'env:read',
  createBucketAccessKey: 'env:read',
  createProjectBucketAccessKey: 'env:read',
  rotateBucketAccessKey: 'env:read',
  presignBucketObject: 'env:read',
  rotateDatabaseUserPassword: 'env:read',
  rotateDatabaseCredentials: 'env:read',
  createEmailRelayZone: 'env:read',
  createProjectEmailRelayZone: 'env:read',
  rotateEmailRelayCredentials: 'env:read',
  createRobotAccount: 'env:read',
  createPreview: 'deploy',
  attachRun: 'logs:read',
};

/** Beside what is deleted: what replaces, and what ends the access of those who have the secret before. */
const DESTROYING = [
  ...['restoreDatabase', 'replaceDnsRecords', 'setBucketLifecycle', 'rotateDatabaseUserPassword'],
  ...['rotateDatabaseCredentials', 'rotateBucketAccessKey', 'rotateEmailRelayCredentials'],
  'rotateSharedRepositoryDeployKey',
];

export function destroys({ id, method }: PublishedOperation): boolean {
  return method === 'DELETE' || DESTROYING.includes(id);
}

function lacksScope(scope: string, { kind, scopes }: Actor): boolean {
  return kind === 'personal' && scope !== 'any' && scopes != null && !scopes.includes(scope);
}

function refusedProject(project: string | null, { kind, projects, member = [] }: Actor): string | null {
  if (project === null) return kind === 'project' ? null : 'project_header_missing';
  if (projects && !projects.includes(project)) return 'project_not_allowed';
  return member.includes(project) ? null : 'project_not_found';
}

const PERSONS_ONLY = [
  ...['createProject', 'deleteProject', 'addSharedRepositoryProject'],
  ...['approveCall', 'refuseCall', 'listPausedKeys', 'resumeKey'],
  ...['listDeletedProjects', 'restoreDeletedProject'],
];
/** Of keys that reach all projects. */
const UNRESTRICTED = ['createProject', 'listPausedKeys', 'resumeKey'];

/** Projects are made and deleted by persons, and made only by keys that reach all projects. */
function refusedEverywhere({ id }: PublishedOperation, { kind, projects }: Actor): string | null {
  if (PERSONS_ONLY.includes(id) && kind === 'project') return 'personal_key_required';
  return UNRESTRICTED.includes(id) && projects ? 'project_not_allowed' : null;
}

function refusedRole({ id, kind, scope }: PublishedOperation, actor: Actor): string | null {
  // Viewers read no secrets, and attach to nothing that they could write to.
  if (kind === 'query' && scope !== 'env:read' && scope !== 'deploy') return null;
  if (actor.role === 'viewer') return 'role_not_permitted';
  const owners =
    ['deleteProject', 'approveCall', 'refuseCall'].includes(id) || (id === 'updateProject' && actor.kind !== 'project');
  return owners && actor.role !== 'owner' ? 'role_not_permitted' : null;
}
