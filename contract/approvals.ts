// Calls that destroy: keys that make many of them are paused, and projects may want that a second person approves them
// (docs/decisions/0231). A call that needs an approval is rehearsed once, so that the person sees what it would do, and
// is refused. Repeated after the approval it passes, once. REST and GraphQL come here by contract/admission.ts.
import type { Context } from '../core/context';
import type { ApprovalDesk, DestroyingCall } from '../core/destroying_call';
import { isDestroying } from './destroying';
import { rehearse } from './dry_run';
import type { RootField } from './operations';

/** The call as an approval is bound to it; null where it destroys nothing. */
export function destroyingCallOf(field: RootField, args: Record<string, unknown>): DestroyingCall | null {
  const { destroys, destroyingInputs, body } = field;
  if (!destroys && !(body && destroyingInputs.some((one) => isDestroying(one, args[body.argument])))) return null;
  // The project is part of the approval; each face names it in its own way.
  const { project_id: _, ...input } = args;
  return { operation: field.name, summary: field.operations[0]?.summary ?? field.name, input };
}

/** Rehearses the call and asks for an approval. @throws what the call throws, else approval_required */
export async function requestApproval(
  ctx: Context,
  desk: ApprovalDesk,
  call: DestroyingCall,
  run: (inner: Context) => Promise<unknown>,
): Promise<never> {
  const consequences = await rehearse(ctx, async (inner) => {
    const changes = await desk.watch(inner);
    await run(inner);
    const { resource } = inner.activity;
    const { type, id, name } = resource ?? {};
    return { resource: type && id ? { type, id, name: name ?? null } : null, affects: await changes() };
  });
  Object.assign(ctx.reply, { status: null, etag: null });
  return desk.request(ctx, call, consequences);
}
