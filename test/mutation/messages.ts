// What people read is no behavior: texts with a space in them are left as they are. Codes, names and
// labels hold none.
import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin';

interface NodePath {
  readonly node: {
    readonly type: string;
    readonly value?: unknown;
    readonly quasis?: readonly { readonly value: { readonly raw: string } }[];
  };
}

export const strykerPlugins = [
  declareValuePlugin(PluginKind.Ignore, 'messages', {
    shouldIgnore(path: NodePath): string | undefined {
      const { type, value, quasis = [] } = path.node;
      const texts =
        type === 'StringLiteral' ? [String(value)] : quasis.map((quasi) => quasi.value.raw);
      const isMessage = type === 'StringLiteral' || type === 'TemplateLiteral';
      return isMessage && texts.some((text) => text.includes(' ')) ? 'a message' : undefined;
    },
  } as never),
];
