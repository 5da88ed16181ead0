/** What one check of `doctor` has found. */
export interface Finding {
  check: string;
  status: 'ok' | 'warning' | 'failed';
  detail: string;
}
