/** One error code. */
export interface ErrorEntry {
  readonly status: number;
  readonly title: string;
  /** What has happened: one sentence, the default `detail` of a problem document. */
  readonly meaning: string;
  /** What to do, and which members of the problem document say more. */
  readonly remedy: string;
  /** The same request may succeed later without a change. */
  readonly retryable: boolean;
}
