// Mails to those who decide in a project.
import type { Context } from '../../core/context';
import type { PlatformMail } from '../../core/mail/platform_mail';
import { named } from '../../db/statement';
import { queueMail } from '../base/mail_outbox';

interface Receivers {
  project_id: string | null;
  /** A person who knows it already. Where they are the only owner, they get it nevertheless. */
  except?: string | null;
  /** A person who gets it, owner or not. */
  also?: string | null;
}

const OWNERS = named(`select u.id, u.email from users u where u.id = $2 or u.id in
  (select m.user_id from members m where m.project_id = $1 and m.role = 'owner') order by u.id`);

/** One mail to each of them, so that none sees the addresses of others. */
export async function mailOwners(ctx: Context, to: Receivers, mail: PlatformMail): Promise<void> {
  const found = await ctx.sql.query<{ id: string; email: string }>(OWNERS, [to.project_id, to.also ?? null]);
  const others = found.filter(({ id }) => id !== to.except);
  for (const { email } of others.length ? others : found) await queueMail(ctx, [email], mail);
}
