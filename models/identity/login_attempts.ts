// Counts logins with a password. Strangers have a limit per address and e-mail, one per address, and one per e-mail
// from all addresses. A browser in which the person was logged in before has limits of its own: guesses of others,
// however many and from wherever, do not lock it out.
import { readKnownBrowser } from '../../core/accounts/known_browser';
import { readSessionCookie } from '../../core/accounts/session_cookie';
import { sha256 } from '../../core/accounts/tokens';
import type { Context } from '../../core/context';
import { addressBlock } from '../../core/protocols/addresses';
import { named } from '../../db/statement';

/** An office or a provider has many people behind one address. In multiples of RATE_LIMIT_FAILED_AUTH. */
export const ADDRESS_TIMES = 4;
/** Whoever has as many addresses keeps unknown browsers away from a person, and guesses no faster. */
const EMAIL_TIMES = 10;

// Idle and expired ones too: they are kept until their cookie ends, unless somebody ended them.
const OF_PERSON = named(
  `select s.id from sessions s join users u on u.id = s.user_id where s.hash = $1 and u.email = $2`,
);

/** The id of a browser in which the person with this e-mail address was logged in before; null for a stranger. */
export async function findKnownBrowser(ctx: Context, email: string): Promise<string | null> {
  const known = readKnownBrowser(ctx, email, ctx.cookie_header);
  const secret = known === null ? readSessionCookie(ctx.config, ctx.cookie_header) : null;
  if (secret === null) return known;
  const [session] = await ctx.sql.query<{ id: string }>(OF_PERSON, [sha256(secret), email]);
  return session?.id ?? null;
}

/** Counts an attempt of a browser. @param email in its normal form @throws rate_limited */
export async function countLogin(ctx: Context, email: string, browser: string | null): Promise<void> {
  if (browser !== null) {
    await ctx.attempt(`login browser ${browser}`);
    // Bounds who has collected many known browsers of a person.
    return ctx.attempt(`login known browsers ${email}`, EMAIL_TIMES);
  }
  const address = addressBlock(ctx.address);
  await ctx.attempt(`login ${address} ${email}`);
  await ctx.attempt(`login address ${address}`, ADDRESS_TIMES);
  await ctx.attempt(`login e-mail ${email}`, EMAIL_TIMES);
}
