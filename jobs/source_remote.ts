// The remote of a source, for jobs: what keeps it from being reached is the error of a source.
import { SourceError, type GitRemote } from '../drivers/source';
import { remoteOf, type RepositorySource } from '../models/applications/application/remote';
import type { JobContext } from './job';

/** @throws SourceError */
export async function requireRemote(ctx: JobContext, source: RepositorySource): Promise<GitRemote> {
  const found = await remoteOf(ctx, source);
  if ('remote' in found) return found.remote;
  throw new SourceError(found.miss.failure, found.miss.message);
}
