// Host names of previews: readable, one label below the apps domain, unique across all projects.
import type { Context } from '../../../core/context';
import { randomWord } from '../../../core/ids';
import { named } from '../../../db/statement';

/** Without vowels, so that no word comes out. */
const ALPHABET = '0123456789bcdfghjkmnpqrstvwxz';
const SUFFIX_LENGTH = 6;
/** RFC 1035 section 2.3.4. */
const LABEL_MAX = 63;
const TAKEN = named(
  'select 1 from previews where hostname = $1 union all select 1 from applications where default_hostname = $1',
);

/** An unused host name: branch or pull request, name of the application, and a suffix that makes it unique. */
export async function freeHostname(
  ctx: Pick<Context, 'sql'> & { config: Pick<Context['config'], 'appsDomain'> },
  application: { name: string },
  shown: { branch: string; pull_request_number: number | null },
): Promise<string> {
  for (;;) {
    const suffix = randomWord(ALPHABET, SUFFIX_LENGTH);
    const hostname = `${labelOf(application.name, shown, suffix)}.${ctx.config.appsDomain}`;
    const taken = await ctx.sql.query(TAKEN, [hostname]);
    if (!taken.length) return hostname;
  }
}

/** At most 63 characters: the part that names the branch gives way. */
export function labelOf(
  name: string,
  { branch, pull_request_number }: { branch: string; pull_request_number: number | null },
  suffix: string,
): string {
  const room = LABEL_MAX - name.length - suffix.length - 2;
  const first = pull_request_number === null ? slugOf(branch, room) : `pr-${pull_request_number}`;
  return `${first}-${name}-${suffix}`;
}

function slugOf(branch: string, room: number): string {
  const plain = branch
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-');
  return plain.replace(/^-/, '').slice(0, room).replace(/-$/, '') || 'preview';
}
