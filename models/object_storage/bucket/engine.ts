// Live queries to an engine that stores objects itself, during an API request.
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import type { ListedObject, ObjectsQuestion } from '../../../core/protocols/objects';
import type { Bucket } from '../bucket';
import { ownerCredentials } from './presign';

/** @throws provider_error */
export async function askEngine(
  ctx: Context,
  { id, name }: Pick<Bucket, 'id' | 'name'>,
  question: ObjectsQuestion,
): Promise<ListedObject[]> {
  const answer = await ctx.probes.bucketObjects?.({ name, owner: ownerCredentials(ctx.secrets, id) }, question);
  if (!answer) throw problem('provider_error', 'The object gateway does not respond. Try again later.');
  return answer;
}
