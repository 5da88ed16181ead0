// Undo of changes: what a mutation notes of the rows that it changes, and what is kept of it for a revert
// (docs/decisions/0232-undo-of-settings.md).

type Values = Record<string, unknown>;

/** A row before and after a mutation; null where there was none, or is none any more. Secrets are in plain. */
export interface RowChange {
  kind: string;
  id: string;
  before: Values | null;
  after: Values | null;
}

/** A call that takes a change back. */
export interface UndoCall {
  operation: string;
  args: Values;
  /** Ids that the rows it makes get again, in this order. */
  revive?: string[];
}

/** A row as the change left it: only then the change is taken back. Names may be dotted paths into documents. */
export interface ExpectedRow {
  kind: string;
  /** Columns that name the row. */
  by: Values;
  /** null: there is no such row. */
  values: Values | null;
  /** Names of secrets among `values`: shown to those who may read variables, or to nobody. */
  secrets?: { names: string[]; readable: boolean };
}

export interface Undo {
  calls: UndoCall[];
  /** Rows above, which other requests lock first. */
  holds: { kind: string; id: string }[];
  expected: ExpectedRow[];
}

/** Why a change cannot be taken back. */
export type RevertObstacle =
  | 'not_kept'
  | 'created'
  | 'deleted'
  | 'action'
  | 'grown'
  | 'secret'
  | 'unchanged'
  | 'too_large'
  | 'expired'
  | 'reverted';

/** As sentences. */
export const REVERT_OBSTACLES: Readonly<Record<RevertObstacle, string>> = {
  not_kept: 'The values from before this entry were not kept.',
  created: 'What was created is taken back by deleting it.',
  deleted: 'A resource that was deleted is not brought back by a revert.',
  action: 'This was an action, not a change of settings, so there is nothing to return to.',
  grown: 'A size can only increase.',
  secret: 'The secret from before was not kept.',
  unchanged: 'Nothing was changed.',
  too_large: 'The values from before were too large to be kept.',
  expired: 'Values from before a change are kept for 7 days.',
  reverted: 'The change has been reverted.',
};
