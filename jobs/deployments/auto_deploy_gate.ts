// Reasons not to deploy a push: a marker in its commit message, or pending or failed checks of its commit.
import { GitProviderError } from '../../core/protocols/git_provider';
import { Problem } from '../../core/errors';
import type { AutoDeployRow } from '../../models/deployments/auto_deploy';
import type { Source } from '../../models/applications/application/source';
import { addressOf, withProvider } from '../../models/integrations/git_integration/client';
import type { JobContext } from '../job';

type Gate =
  | { open: true }
  /** Evaluated again after `nextMs`; until then nothing else is deployed. */
  | { open: false; wait: true; since: string; reason: string; nextMs: number }
  /** This head is never deployed. */
  | { open: false; wait: false; reason: string };

const LIMIT_MS = 60 * 60_000;
/** Checks begin some seconds after a push: until then there are none. */
const NONE_MS = 60_000;
const POLL_MS = 10_000;

/** @throws nothing for a provider that gives no answer: that is waited for too */
export async function checksGate(row: AutoDeployRow, source: Source, sha: string, ctx: JobContext): Promise<Gate> {
  const { git_integration_id: id, repository_id } = source;
  if (!row.wait_for_checks || id === null || repository_id === null) return { open: true };
  const since = row.awaited_sha === sha && row.awaited_since !== null ? row.awaited_since : new Date().toISOString();
  const waitedMs = Date.now() - Date.parse(since);
  const short = sha.slice(0, 10);
  const over = (what: string): Gate =>
    waitedMs > LIMIT_MS
      ? { open: false, wait: false, reason: `Commit ${short} was not deployed within an hour: ${what}` }
      : { open: false, wait: true, since, reason: `Commit ${short} is not deployed yet: ${what}`, nextMs: POLL_MS };
  try {
    const found = await withProvider(ctx, id, async (client) =>
      client.checks(await addressOf(client, repository_id), sha),
    );
    if (found.state === 'success') return { open: true };
    if (found.state === 'failure')
      return { open: false, wait: false, reason: `Commit ${short} was not deployed: ${listed(found.failed)} failed.` };
    if (found.state === 'pending') return over(`${listed(found.pending)} has not finished.`);
    return waitedMs > NONE_MS ? { open: true } : over('no check of it has begun.');
  } catch (error) {
    if (error instanceof GitProviderError || error instanceof Problem) return over(error.message);
    throw error;
  }
}

function listed(names: readonly string[]): string {
  return names.length === 1 ? `the check ${names[0]}` : `one of the checks ${names.join(', ')}`;
}
