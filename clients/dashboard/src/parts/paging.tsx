/** Buttons to older entries of a list, and back to its beginning. */
export function Paging({
  cursor,
  next,
  go,
}: {
  cursor: string | null;
  next: string | null;
  go(to: string | null): void;
}) {
  if (!cursor && !next) return null;
  return (
    <p class="actions">
      {cursor && (
        <button type="button" class="quiet" onClick={() => go(null)}>
          First page
        </button>
      )}
      {next && (
        <button type="button" class="quiet" onClick={() => go(next)}>
          Next page
        </button>
      )}
    </p>
  );
}
