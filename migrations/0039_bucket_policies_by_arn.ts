import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';

interface Statement {
  effect: 'allow' | 'deny';
  actions: string[];
  resources: string[];
}

interface Found {
  id: string;
  project_id: string;
  account_id: string;
  name: string;
  policy: Statement[];
}

const LIST = /^(s3:)?(list\w*|\w*[*?]\S*)$/i;
const PLATFORM = { type: 'system', id: null, name: 'Platform' };

/**
 * Policies that came over S3 lost the difference between the ARN of a bucket and that of all its objects: both were
 * stored as the pattern `*`. Where patterns of keys stand beside it, it was the bucket: it is narrowed to that. Where
 * it stands alone, nothing says which it was, so the statement stays, and the activity of the project names the bucket.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table buckets add column policy_document text');
  const { rows } = await knex.raw<{ rows: Found[] }>(
    `select b.id, b.project_id, p.account_id, b.name, b.policy from buckets b join projects p on p.id = b.project_id
      where b.deleted_at is null and b.policy <> '[]' order by b.id for update of b`,
  );
  for (const bucket of rows) {
    const policy = bucket.policy.map((statement) => narrowed(statement, bucket.name));
    const isNarrowed = JSON.stringify(policy) !== JSON.stringify(bucket.policy);
    if (isNarrowed)
      await knex.raw(
        `update buckets set policy = ?, version = version + 1, updated_at = greatest(now(), updated_at),
           generation = generation + 1, attempts = 0, deadline_at = null, next_at = now() where id = ?`,
        [JSON.stringify(policy), bucket.id],
      );
    if (isNarrowed) await record(knex, bucket, 'bucket.policy_narrowed');
    if (policy.some(mayBeWider)) await record(knex, bucket, 'bucket.policy_to_review');
  }
}

function narrowed(statement: Statement, name: string): Statement {
  const { effect, resources } = statement;
  const patterns = resources.filter((one) => one !== '*');
  if (effect === 'deny' || !patterns.length || patterns.length === resources.length) return statement;
  const arn = `arn:aws:s3:::${name}`;
  return { ...statement, resources: [arn, ...patterns.map((pattern) => `${arn}/${pattern}`)] };
}

/** Lists by a pattern of keys are another thing that a policy of AWS does not allow. */
function mayBeWider({ effect, actions, resources }: Statement): boolean {
  if (effect === 'deny' || resources.every((one) => one.startsWith('arn:'))) return false;
  return resources.includes('*') || actions.some((action) => LIST.test(action));
}

async function record(knex: Knex, { id, project_id, account_id, name }: Found, action: string): Promise<void> {
  await knex.raw(
    `insert into activity (id, project_id, account_id, action, actor, resource_type, resource_id, resource_name,
       created_at) values (?, ?, ?, ?, ?, 'bucket', ?, ?, now())`,
    [activityId(), project_id, account_id, action, JSON.stringify(PLATFORM), id, name],
  );
}

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** 48 bits of milliseconds and 80 random ones, as ids were when this was written. */
function activityId(): string {
  let bits = (BigInt(Date.now()) << 80n) | BigInt(`0x${randomBytes(10).toString('hex')}`);
  let text = '';
  for (let count = 0; count < 26; count += 1) {
    text = ALPHABET.charAt(Number(bits & 31n)) + text;
    bits >>= 5n;
  }
  return `act_${text}`;
}
