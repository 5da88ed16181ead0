import type { ApiError } from '../../api/client';
import type { Place, ResourceTable, Value } from '../../api/resources/table';
import type { Draft } from './draft';

export interface FieldProps {
  table: ResourceTable;
  place: Place;
  field: Value;
  /** Path of the field in the input, by which its errors are found. */
  path: string;
  draft: Draft;
  error: ApiError | null;
  /** Of a form for what is there: nothing has to be filled in again. */
  isEdit: boolean;
  changed(draft: Draft): void;
}

/** What the API says of a field, in its words. */
export function problemAt(error: ApiError | null, path: string): string | null {
  const found = error?.errors.find(({ field }) => field === path);
  if (!found) return null;
  const text = found.detail;
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}
