// All errors visible to clients, in the order of their status. Served by GET /v2/errors.
import { accessErrors } from './error_table/access';
import { contentErrors } from './error_table/contents';
import type { ErrorEntry } from './error_table/entry';
import { requestErrors } from './error_table/requests';
import { resourceErrors } from './error_table/resources';
import { serviceErrors } from './error_table/service';

export type { ErrorEntry };

export const errors = {
  ...requestErrors,
  ...accessErrors,
  ...resourceErrors,
  ...contentErrors,
  ...serviceErrors,
} as const satisfies Record<string, ErrorEntry>;
