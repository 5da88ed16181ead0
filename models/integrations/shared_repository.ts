import type { Context, SourceResult } from '../../core/context';
import { Problem, problem } from '../../core/errors';
import { mintId } from '../../core/ids';
import { defineStates } from '../../core/states';
import type { CreateSharedRepositoryInput, DeployKey, UpdateSharedRepositoryInput } from '../../schema/types';
import { named } from '../../db/statement';
import type { Values } from '../../db/table';
import { page, type Page, type PageArguments } from '../base/page';
import { Resource } from '../base/resource';
import { usersOfShared } from './git_integration/dependents';
import { newHook } from './git_integration/hook';
import { isSsh, requireAccess, requireAddress, type Access } from './shared_repository/access';
import { makeDeployKey } from './shared_repository/deploy_key';
import { remoteOfShared } from './shared_repository/remote';
import { sealedColumns } from '../base/sealed_columns';

/** A repository that is connected by its address. Its project owns it; others may use it. */
export class SharedRepository extends Resource {
  static readonly table = 'shared_repositories';
  static readonly kind = 'shared_repository';
  static readonly idPrefix = 'srp';
  static override readonly projectChild = 'shared_repositories';
  static override readonly filters = { access_level: 'access_level = ?', status: 'status = ?' };
  static override readonly sorts = ['name'];
  static override readonly quotas = [{ resource: 'shared_repositories' }];
  static override readonly states = defineStates({
    initial: ['pending'],
    moves: { pending: ['active', 'error'], active: ['error', 'pending'], error: ['active', 'pending'] },
  });

  declare name: string;
  declare url: string;
  declare access: Access;
  declare git_integration_id: string | null;
  declare default_branch: string;
  declare deploy_key: DeployKey | null;
  declare sealed_key: string | null;
  declare host_key: string | null;
  declare sealed_hook: string;
  declare status: 'pending' | 'active' | 'error';
  declare status_reason: string | null;
  declare last_verified_at: string | null;
  /** Of a row that was read for the selected project; one that was written is its own. */
  declare access_level?: 'owner' | 'shared';

  /** One page of those that the selected project may use. */
  static list(ctx: Context, args: PageArguments): Promise<Page<SharedRepository>> {
    return page(
      SharedRepository,
      ctx,
      args,
      {},
      { from: VISIBLE, columns: '*', values: { project_id: ctx.project?.id } },
    );
  }

  /** One that the selected project may use. @throws not_found */
  static async visible(ctx: Context, id: string): Promise<SharedRepository> {
    const [row] = await ctx.sql.query<SharedRepository>(GET, [ctx.project?.id, id]);
    if (!row) throw problem('not_found');
    return row;
  }

  /** The same, locked, with If-Match checked. */
  static async visibleForUpdate(ctx: Context, id: string): Promise<SharedRepository> {
    await SharedRepository.visible(ctx, id);
    await ctx.sql.query(LOCK, [id]);
    return (await SharedRepository.visible(ctx, id)).requireMatch(ctx);
  }

  /** One that the selected project owns, locked, with If-Match checked. @throws not_found, not_owner_project */
  static async owned(ctx: Context, id: string): Promise<SharedRepository> {
    const { access_level } = await SharedRepository.visible(ctx, id);
    if (access_level !== 'owner') throw problem('not_owner_project');
    return SharedRepository.forUpdate(ctx, id);
  }

  /** @throws validation_failed, reference_not_found, invalid_state, already_exists, quota_exceeded */
  static async create(ctx: Context, input: CreateSharedRepositoryInput): Promise<SharedRepository> {
    const { url } = input;
    requireAddress(ctx, url);
    const access = input.access ?? (isSsh(url) ? 'deploy_key' : 'public');
    const git_integration_id = input.git_integration_id ?? null;
    await requireAccess(ctx, url, access, git_integration_id);
    const id = mintId(SharedRepository.idPrefix);
    return SharedRepository.insert(ctx, {
      id,
      url,
      access,
      git_integration_id,
      name: input.name ?? nameOf(url),
      default_branch: input.default_branch ?? 'main',
      status: 'pending',
      ...newHook(ctx.secrets, id),
      ...(access === 'deploy_key' && keyColumns(ctx, id)),
    });
  }

  /** @throws validation_failed, reference_not_found, invalid_state */
  async change(ctx: Context, input: UpdateSharedRepositoryInput): Promise<this> {
    const { name, default_branch } = input;
    const plain = { ...(name != null && { name }), ...(default_branch != null && { default_branch }) };
    const access = input.access ?? this.access;
    const named = input.git_integration_id;
    const git_integration_id =
      named === undefined && access === this.access ? this.git_integration_id : (named ?? null);
    if (access === this.access && git_integration_id === this.git_integration_id) return this.update(ctx, plain);
    await requireAccess(ctx, this.url, access, git_integration_id);
    return this.update(ctx, { ...plain, access, git_integration_id, status: 'pending', status_reason: null });
  }

  /** Reads the repository before the transaction of `verify`. @throws provider_error */
  static async probe(ctx: Context, id: string): Promise<SourceResult | null> {
    const found = await SharedRepository.visible(ctx, id).catch(() => null);
    if (!found) return null;
    try {
      const remote = await remoteOfShared(ctx, found);
      return await ctx.probes.source.resolveCommit(remote, {});
    } catch (error) {
      // An integration that is not active.
      if (error instanceof Problem && error.code === 'invalid_state')
        return { found: false, failure: 'refused', message: error.detail };
      throw error;
    }
  }

  /** @throws provider_error where the remote gave no answer */
  async verify(ctx: Context, answer: SourceResult | null): Promise<this> {
    if (!answer) throw problem('provider_error', 'The repository was not read. Try again.');
    const last_verified_at = new Date().toISOString();
    const isEmpty = !answer.found && answer.failure === 'empty';
    if (answer.found || isEmpty) {
      const { branch = null, host_key = null } = answer.found ? answer : {};
      return this.update(ctx, {
        status: 'active',
        status_reason: null,
        last_verified_at,
        ...(branch !== null && { default_branch: branch }),
        host_key: this.host_key ?? host_key,
      });
    }
    if (answer.failure === 'unreachable') throw problem('provider_error', answer.message);
    return this.update(ctx, { status: 'error', status_reason: answer.message, last_verified_at });
  }

  /** @throws invalid_state where it has no deploy key */
  async rotateKey(ctx: Context): Promise<this> {
    if (this.access !== 'deploy_key')
      throw problem('invalid_state', 'The repository is not read with a deploy key.', {
        resource_status: this.access,
        allowed_statuses: ['deploy_key'],
      });
    const fresh = { status: 'pending', status_reason: null, host_key: null };
    return this.update(ctx, { ...fresh, ...keyColumns(ctx, this.id) });
  }

  /** @throws resource_in_use */
  async destroy(ctx: Context): Promise<void> {
    const dependents = await usersOfShared(ctx, this.id, null);
    if (dependents.length) throw problem('resource_in_use', 'Applications use the repository.', { dependents });
    await this.remove(ctx);
  }
}

const COLUMNS = `s.id, s.project_id, s.name, s.url, s.access, s.git_integration_id, s.default_branch, s.deploy_key,
  s.sealed_key, s.host_key, s.sealed_hook, s.status, s.status_reason, s.last_verified_at, s.version,
  s.observed_generation, s.created_at, s.updated_at`;
const visibleTo = (project: string): string => `(select ${COLUMNS}, 'owner' as access_level
    from shared_repositories s where s.project_id = ${project}
  union all
  select ${COLUMNS}, 'shared' from shared_repositories s join shared_repository_projects p
    on p.shared_repository_id = s.id where p.project_id = ${project}) as visible`;
const VISIBLE = visibleTo(':project_id');
const GET = named(`select * from ${visibleTo('$1')} where id = $2`, { makes: SharedRepository, quick: true });

const LOCK = named('select 1 from shared_repositories where id = $1 for update');

function keyColumns({ secrets }: Context, id: string): Values {
  const { public_key, fingerprint, private_key } = makeDeployKey(id);
  return {
    deploy_key: { public_key, fingerprint, created_at: new Date().toISOString() },
    sealed_key: secrets.seal(private_key, sealedColumns.deployKey.contextOf(id)),
  };
}

const NAME_MAX = 100;

/** `shop` of https://git.example.com/acme/shop.git. */
function nameOf(url: string): string {
  const last = url.replace(/\/+$/, '').split(/[/:]/).at(-1) ?? '';
  return (
    last
      .replace(/\.git$/, '')
      .replace(/\p{Cc}/gu, '')
      .slice(0, NAME_MAX)
      .trim() || 'repository'
  );
}
