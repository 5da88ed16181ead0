// Pages of everything that the API has, made of its SDL: which page an address means.
import { useEffect } from 'preact/hooks';
import table from '#resources';
import { hrefOf, placeOf } from '../../api/resources/table';
import { pageProject } from '../../keyboard';
import { Page } from '../../parts/page';
import { address, decodePart } from '../../router';
import { pages } from '..';
import { AllResources } from './all';
import { DocumentPage } from './document';
import './generic.css';
import { ListPage } from './list';
import { OperationPage } from './operation';

/** @param id of the project; left out for what belongs to none. @param rest path behind `resources/` */
export function Resources({ id, rest }: { id?: string; rest: string }) {
  useEffect(() => void (pageProject.value = id), [id]);
  const patterns = pages.map(([pattern]) => pattern);
  if (!rest) return <AllResources table={table} projectId={id} patterns={patterns} />;
  const place = placeOf(table, id, rest.split('/').map(decodePart));
  if (!place) return <NoPage projectId={id} />;
  const around = { table, place, patterns };
  const wanted = address.value.query.get('do');
  const operation = wanted && place.page.operations.includes(wanted) ? table.operations[wanted] : undefined;
  const key = hrefOf(place.key, place.projectId, place.ids);
  if (operation) return <OperationPage key={`${key} ${operation.name}`} around={around} operation={operation} />;
  return place.page.isList ? <ListPage key={key} around={around} /> : <DocumentPage key={key} around={around} />;
}

function NoPage({ projectId }: { projectId: string | undefined }) {
  return (
    <Page title="Page not found" projectId={projectId}>
      <p>The API has nothing at this path.</p>
    </Page>
  );
}
