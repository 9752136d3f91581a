import { useConsole } from './context.ts';
import { LoadedPart, Screen } from './controls/screen.tsx';
import { useLoaded } from './loading.ts';
import { TEXTS } from './texts.ts';

export function TokenScreen({ id }: { readonly id: string }) {
  const { api } = useConsole();
  const loaded = useLoaded(id, () => api.get(id));
  return (
    <LoadedPart loaded={loaded}>
      {(token) => <Screen title={token.name ?? TEXTS.list.unnamed}>{token.masked}</Screen>}
    </LoadedPart>
  );
}
