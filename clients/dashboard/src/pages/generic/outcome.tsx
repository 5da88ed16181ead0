// What an operation has answered, where no page shows it again.
import type { Row } from '../../api/resources/query';
import { hrefOf, type Operation } from '../../api/resources/table';
import type { Around } from './links';
import { ObjectValue } from './values';

export function Outcome({ around, operation, row }: { around: Around; operation: Operation; row: Row }) {
  const { table, place } = around;
  const back = hrefOf(place.key, place.projectId, place.ids);
  const isNew = place.page.isList && operation.answer === place.page.type && table.pages[`${place.key}/{}`];
  const own =
    isNew && typeof row.id === 'string' ? hrefOf(`${place.key}/{}`, place.projectId, [...place.ids, row.id]) : null;
  return (
    <section aria-live="polite">
      <p class="notice good" role="status">
        Done.{operation.hasSecret && ' Copy the secret now: it is not shown again.'}
      </p>
      <ObjectValue type={operation.answer} row={row} around={around} />
      <footer class="actions">
        <a role="button" href={own ?? back}>
          {own ? 'Open it' : 'Back'}
        </a>
      </footer>
    </section>
  );
}
