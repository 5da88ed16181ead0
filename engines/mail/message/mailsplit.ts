import { createRequire } from 'node:module';
import type * as OfMailsplit from '@zone-eu/mailsplit';
import { memoize } from '../../../core/memoize';

/** The parser of messages, loaded for the first one: it is 50 modules, 40 ms, which a start need not wait for. */
export const mailsplit = memoize(() => createRequire(__filename)('@zone-eu/mailsplit') as typeof OfMailsplit);
