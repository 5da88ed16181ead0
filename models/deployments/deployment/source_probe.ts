// Checks a request for a deployment: the source allows it, and the remote has the commit.
import type { Context, SourceResult } from '../../../core/context';
import { problem, validationFailed, type FieldError } from '../../../core/errors';
import type { CreateDeploymentInput } from '../../../schema/types';
import { Application } from '../../applications/application';
import { isGit, resolveSource } from '../../applications/application/remote';
import type { Source } from '../../applications/application/source';
import { sourceProblem } from '../../integrations/git_integration/client';

/** The source at the time of the probe, and the remote's response. */
export interface ProbedSource {
  source: Source;
  answer: SourceResult;
}

/** Probes the remote, at most 25 s. Null where the request needs no remote; the mutation validates that. */
export async function probeSource(
  ctx: Context,
  applicationId: string,
  input: CreateDeploymentInput,
): Promise<ProbedSource | null> {
  const application = await Application.get(ctx, applicationId).catch(() => null);
  const source = application?.source ?? null;
  if (!source || input.source_upload_id != null || !isGit(source) || validateInput(source, input).length) return null;
  const wanted = { branch: input.branch ?? source.branch, commit: input.commit_sha };
  const answer = await resolveSource(ctx, source, wanted);
  return { source, answer };
}

/** @throws source_not_configured, validation_failed */
export function requireDeployable(source: Source | null, input: CreateDeploymentInput): asserts source is Source {
  if (!source) throw problem('source_not_configured', 'The application has no source. Set its source first.');
  const mistakes = validateInput(source, input);
  if (mistakes.length) throw validationFailed(mistakes);
}

/** @throws engine_unavailable where nothing can be run in the root of an image */
export async function requireImages(ctx: Pick<Context, 'catalogs'>): Promise<void> {
  const { programs } = await ctx.catalogs.facts();
  if (programs.bubblewrap) return;
  throw problem('engine_unavailable', 'This installation cannot run images: its host lacks the program bubblewrap.');
}

/** The commit that the remote has. @throws reference_not_found with `field`, provider_error */
export function requireCommit(
  answer: SourceResult | undefined,
  input: CreateDeploymentInput,
): { branch: string | null; sha: string } {
  if (!answer) throw problem('provider_error', 'The repository was not read. Try again.');
  if (answer.found) return answer;
  const field = failedField(answer.failure, input);
  if (field) throw problem('reference_not_found', answer.message, { field });
  throw sourceProblem(answer);
}

type Failure = Extract<SourceResult, { found: false }>['failure'];

function failedField(failure: Failure, input: CreateDeploymentInput): string | null {
  if (failure === 'unknown_commit') return 'commit_sha';
  if (failure !== 'unknown_branch' && failure !== 'empty') return null;
  return input.branch == null ? 'source.branch' : 'branch';
}

/** What each field is for. */
const FOR = { branch: 'git', commit_sha: 'git', image: 'image' } as const;

function validateInput({ type }: Source, input: CreateDeploymentInput): FieldError[] {
  if (type === 'upload' && input.source_upload_id == null)
    return [{ field: 'source_upload_id', code: 'required', detail: 'is required for a source of the type upload' }];
  const wrong = (Object.keys(FOR) as (keyof typeof FOR)[]).filter(
    (field) => input[field] != null && FOR[field] !== type,
  );
  return wrong.map((field) => ({
    field,
    code: 'depends_on',
    detail:
      input.source_upload_id == null
        ? `requires a source of the type ${FOR[field]}, and the source of the application has the type ${type}`
        : 'cannot be combined with source_upload_id',
  }));
}
