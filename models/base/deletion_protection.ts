// Protection from deletion, of a resource by itself or with its whole project. Every kind whose rows have a column
// `deletion_protection` asks here before it removes one, whatever the way that the request came
// (test/activity/deletion_protection.test.ts).
import type { Context } from '../../core/context';
import { problem, type Problem } from '../../core/errors';
import { quick } from '../../db/statement';

interface Protectable {
  id: string;
  project_id: string;
  deletion_protection: boolean;
}

const OF_PROJECT = quick('select 1 from projects where id = $1 and deletion_protection');

/** @throws deletion_protected, with the resource or the project whose protection it is in `protected_by` */
export async function requireUnprotected(ctx: Pick<Context, 'sql'>, resource: Protectable): Promise<void> {
  if (resource.deletion_protection) throw protectedBy('resource', resource.id);
  const found = await ctx.sql.query(OF_PROJECT, [resource.project_id]);
  if (found.length) throw protectedBy('project', resource.project_id);
}

export function protectedBy(what: 'resource' | 'project', id: string): Problem {
  const subject = what === 'project' ? 'The whole project is' : 'The resource is';
  const detail = `${subject} protected from deletion. Turn its deletion protection off first.`;
  return problem('deletion_protected', detail, { protected_by: id });
}
