// Asking a remote for the commit of a preview, before the transaction.
import type { Context, SourceResult } from '../../core/context';
import type { CreatePreviewInput } from '../../schema/types';
import { Application } from '../application';
import { isGit, resolveSource } from '../application/remote';
import type { Source } from '../application/source';
import { Preview } from '../preview';
import { isUnknown, sourceQuestionOf, refsOf, type ProbedHead } from './head';

/** Asks the remote before a preview is made, at most 5 s. Null where there is nothing to ask; the mutation says why. */
export async function probeNew(
  ctx: Context,
  applicationId: string,
  { branch, pull_request_number }: CreatePreviewInput,
): Promise<ProbedHead | null> {
  const source = await sourceOf(ctx, applicationId);
  if (!source) return null;
  const candidates = branch != null ? [branch] : refsOf(pull_request_number as number);
  const asked = await Promise.all(
    candidates.map(async (candidate) => ({
      source,
      branch: candidate,
      answer: await probeHead(ctx, source, candidate),
    })),
  );
  // Which of its refs the remote does not have says nothing, as long as it has one; that it gave no answer does.
  return asked.find(({ answer }) => answer.found) ?? asked.find(({ answer }) => !isUnknown(answer)) ?? asked[0] ?? null;
}

/** The same for a preview that is there. */
export async function probePresent(ctx: Context, applicationId: string, id: string): Promise<ProbedHead | null> {
  const source = await sourceOf(ctx, applicationId);
  const preview = source && (await Preview.get(ctx, id, { application_id: applicationId }).catch(() => null));
  if (!source || !preview) return null;
  return { source, branch: preview.branch, answer: await probeHead(ctx, source, preview.branch) };
}

async function sourceOf(ctx: Context, applicationId: string): Promise<Source | null> {
  const application = await Application.get(ctx, applicationId).catch(() => null);
  return isGit(application?.source) ? (application?.source ?? null) : null;
}

function probeHead(ctx: Context, source: Source, branch: string): Promise<SourceResult> {
  return resolveSource(ctx, source, sourceQuestionOf(branch));
}
