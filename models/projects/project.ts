import type { Context, ProjectAccess, Role } from '../../core/context';
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';
import type { ApprovalRequirement, CreateProjectInput, UpdateProjectInput } from '../../schema/types';
import type { Bin } from '../base/bin';
import { protectedBy } from '../base/deletion_protection';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import { requireParentRoom, usedOf } from '../base/quota';
import { requireRegion } from '../reference/region';
import { allKinds } from '../base/kinds';
import { requestedChanges } from '../base/requested_changes';
import { named } from '../../db/statement';

/** The container of every other resource. Its rows are not tenants of a project, so it reads itself. */
export class Project extends Resource {
  static readonly table = 'projects';
  static readonly kind = 'project';
  static readonly idPrefix = 'prj';
  static override readonly keepsRow = true;
  static override readonly parentLimit = {
    column: 'account_id',
    max: limits.projectsPerAccount,
    resource: 'projects',
    parent: 'The account',
    rows: 'projects',
  };
  static override readonly bin: Bin<Project> = {
    nameFormat: 'label',
    async purge({ sql }, { id }) {
      await sql.query(REVOKE, [id]);
      await sql.query(EMPTY_BIN, [id]);
    },
    restore: (ctx, project) => project.afterRestore(ctx),
  };
  static override readonly filters = { name: 'name = ?', role: 'role = ?' };
  static override readonly sorts = ['name', 'updated_at'];

  declare account_id: string;
  declare name: string;
  declare description: string | null;
  declare default_region: string;
  declare approval_required_for: ApprovalRequirement;
  declare deletion_protection: boolean;
  /** Role of the caller, null for a project key. */
  declare role: Role | null;

  /** The project that the guard selected. @throws project_not_found where it has just gone */
  static async selected(ctx: Context): Promise<Project> {
    const access = ctx.project as ProjectAccess;
    const [row] = await ctx.sql.query<object>(GET, [access.id]);
    if (!row) throw problem('project_not_found');
    return asVisibleTo(ctx, row, access.role);
  }

  /** As selected, locked, with If-Match checked. */
  static async selectedForUpdate(ctx: Context): Promise<Project> {
    const { id, role } = ctx.project as ProjectAccess;
    await ctx.sql.query(LOCK, [id]);
    const project = await Project.selected(ctx);
    return asVisibleTo(ctx, project.requireMatch(ctx), role);
  }

  /** A project of the caller's account, with the caller as its owner. @throws quota_exceeded, reference_not_found */
  static async create(ctx: Context, input: CreateProjectInput): Promise<Project> {
    const { account_id, user } = ctx.identity as NonNullable<Context['identity']>;
    const default_region = input.default_region ?? ctx.config.regionId;
    requireRegion(ctx, default_region, 'default_region');
    await ctx.sql.query(LOCK_ACCOUNT, [account_id]);
    const project = await Project.insert(ctx, { ...input, account_id, default_region });
    await ctx.sql.query(JOIN, [project.id, user?.id, 'owner']);
    if (ctx.activity.resource) ctx.activity.resource.project_id = project.id;
    return asVisibleTo(ctx, project, 'owner');
  }

  /** @throws reference_not_found */
  async change(ctx: Context, input: UpdateProjectInput): Promise<Project> {
    const changes = requestedChanges(input, this);
    if (changes.default_region != null) requireRegion(ctx, changes.default_region, 'default_region');
    const { role } = this;
    await this.update(ctx, changes);
    await ctx.forget({ project_id: this.id });
    this.role = role;
    return this;
  }

  /**
   * Its keys stop working at once, also while it is in the bin.
   * @throws deletion_protected, project_not_empty with the counts per kind
   */
  async destroy(ctx: Context): Promise<void> {
    if (this.deletion_protection) throw protectedBy(Project.kind, this.id);
    const resources = await contentsOf(ctx, this.id);
    if (resources.length) throw problem('project_not_empty', undefined, { resources });
    await removeToBin(ctx, this);
    await ctx.forget({ project_id: this.id });
  }

  /** Members, keys and its own bin are as they were. @throws quota_exceeded */
  private async afterRestore(ctx: Context): Promise<string[]> {
    await ctx.sql.query(LOCK_ACCOUNT, [this.account_id]);
    await requireParentRoom(ctx, Project, this.account_id, 0);
    if (ctx.activity.resource) ctx.activity.resource.project_id = this.id;
    await ctx.forget({ project_id: this.id });
    return [];
  }
}

const GET = named(
  `select id, account_id, name, description, default_region, deletion_protection, approval_required_for, version,
      created_at, updated_at
    from projects where id = $1 and deleted_at is null`,
);
const LOCK = named('select 1 from projects where id = $1 for update');
const JOIN = named('insert into members (project_id, user_id, role) values ($1, $2, $3)');
const REVOKE = named('update api_keys set revoked_at = now() where project_id = $1 and revoked_at is null');
/** What was in the bin of a project goes with it. */
const EMPTY_BIN = named(
  `update deleted_resources set kept_until = now() where project_id = $1 and resource_id <> $1 and kept_until > now()`,
);
const LOCK_ACCOUNT = named('select 1 from accounts where id = $1 for update');

function asVisibleTo(ctx: Context, row: object, role: Role): Project {
  return Object.assign(new Project(), row, { role: ctx.identity?.kind === 'project' ? null : role });
}

async function contentsOf(ctx: Context, projectId: string): Promise<{ resource: string; count: number }[]> {
  const found: { resource: string; count: number }[] = [];
  for (const kind of allKinds()) {
    if (!kind.projectChild) continue;
    const count = await usedOf(ctx, kind, projectId, { resource: kind.projectChild });
    if (count) found.push({ resource: kind.projectChild, count });
  }
  return found;
}
