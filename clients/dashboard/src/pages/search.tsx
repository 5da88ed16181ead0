// The palette as a page, with an address that keeps what is looked for.
import { CommandBox } from '../palette/command_box';
import { Page } from '../parts/page';
import { address, setQuery } from '../router';

export function Search() {
  return (
    <Page title="Search" command="svc api listApplications --field name --project PROJECT">
      <CommandBox
        mode="all"
        text={address.peek().query.get('q') ?? ''}
        onText={(q) => setQuery({ q })}
        onDone={() => undefined}
      />
    </Page>
  );
}
