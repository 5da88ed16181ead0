/** One error code. */
export interface ErrorEntry {
  readonly status: number;
  readonly title: string;
  /** One sentence: the default `detail` of a problem document. */
  readonly meaning: string;
  /** What the client should do, and which members of the problem document have details. */
  readonly remedy: string;
  /** Whether the same request may succeed later without changes. */
  readonly retryable: boolean;
}
