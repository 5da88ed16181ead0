// Failures of an authority that concern more than one order.
import { DriverError } from '../../core/driver';

/** The account that a key identifies was closed at the authority: it takes another key. */
export class AccountClosed extends Error {}

/** The authority asks all orders of the account to wait for `retryAfterMs`. */
export class AuthorityBusy extends DriverError {}
