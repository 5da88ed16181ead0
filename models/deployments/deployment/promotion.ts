// What of another application can be deployed in this one, and by whom.
import type { Context, Identity, ProjectAccess } from '../../../core/context';
import { problem, validationFailed } from '../../../core/errors';
import type { PromoteApplicationInput } from '../../../schema/types';
import { Application } from '../../applications/application';
import { attachedDatabases } from '../../applications/attached_database';
import { actorOf, recordProjectEvent } from '../../projects/activity';
import type { Deployment } from '../deployment';
import type { PromotedFrom } from './queue';

const FIELD = 'source_application_id';

/**
 * The deployment of the other application. It is not locked: whether its files are still there is seen when they are
 * copied. @throws reference_not_found, role_not_permitted, validation_failed, promotion_not_possible
 */
export async function findPromotable(
  ctx: Context,
  target: Application,
  { source_application_id }: PromoteApplicationInput,
  kind: typeof Deployment,
): Promise<{ promoted_from: PromotedFrom; deployment: Deployment }> {
  if (source_application_id === target.id)
    throw validationFailed([
      { field: FIELD, code: 'mutually_exclusive', detail: 'is the application itself: roll it back' },
    ]);
  const project = await sourceProject(ctx, source_application_id);
  const there: Context = { ...ctx, project };
  const application = await Application.get(there, source_application_id).catch(() => notFound(FIELD));
  const { current_deployment_id: id } = application;
  if (!id) throw refused(`${application.name} has no active deployment. Deploy it first.`);
  const deployment = await kind.get(there, id, { application_id: application.id }).catch(() => notFound(FIELD));
  await requireFitting(ctx, application, target);
  const { number } = deployment;
  if (project.id !== target.project_id) await recordThere(ctx, project, application, deployment);
  return {
    promoted_from: {
      ...{ project_id: project.id, application_id: application.id, application_name: application.name },
      ...{ deployment_id: deployment.id, number },
    },
    deployment,
  };
}

/** Where a caller may deploy, they may read what is deployed. @throws reference_not_found, role_not_permitted */
async function sourceProject(ctx: Context, applicationId: string): Promise<ProjectAccess> {
  const identity = ctx.identity as Identity;
  const id = await ctx.projectOf(applicationId);
  const allowed = identity.project_id ? [identity.project_id] : identity.project_ids;
  const project = id && (!allowed || allowed.includes(id)) ? await ctx.access(id) : null;
  if (!project) return notFound(FIELD);
  if (project.role !== 'viewer') return project;
  const detail = `You are a viewer of the project ${project.name}, and a promotion needs a developer of both projects.`;
  throw problem('role_not_permitted', detail, { required_role: 'developer' });
}

function notFound(field: string): never {
  throw problem('reference_not_found', `${field}: you can reach no usable resource with this id.`, { field });
}

const refused = (detail: string): Error => problem('promotion_not_possible', detail);

/** A program that was built for one engine does not find another one under the same name. */
async function requireFitting({ sql }: Context, source: Application, target: Application): Promise<void> {
  if (source.region !== target.region)
    throw refused(
      `${source.name} runs in ${source.region}, and ${target.name} in ${target.region}. Deploy its source.`,
    );
  const own = new Map((await attachedDatabases(sql, target.id)).map((one) => [one.env_prefix, one.engine]));
  for (const { env_prefix: prefix, engine } of await attachedDatabases(sql, source.id)) {
    const other = own.get(prefix) ?? engine;
    if (other === engine) continue;
    const detail = `${prefix}_URL leads to ${engine} in ${source.name}, and to ${other} in ${target.name}.`;
    throw refused(`${detail} Attach a database of the same engine first.`);
  }
}

/** Who looks after the other application reads where its version has gone. */
async function recordThere(
  ctx: Context,
  project: ProjectAccess,
  application: Application,
  { id, number }: Deployment,
): Promise<void> {
  const identity = ctx.identity as Identity;
  await recordProjectEvent(ctx.sql, {
    ...{ project_id: project.id, action: 'deployment.promoted', actor: actorOf(identity) },
    key_id: identity.kind === 'session' ? null : identity.id,
    resource: { type: 'deployment', id, name: `${application.name} #${number}` },
  });
}
