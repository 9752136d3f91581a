// Nest: one guard before all controllers. Run it, and call it with the command that it prints.
import 'reflect-metadata';
import { Controller, Get, Module, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { generateKey, MemoryTokenStore, TokenService } from 'tokenwright';
import { bearerGuard, nestGuard } from 'tokenwright/http';

const tokens = new TokenService({
  store: new MemoryTokenStore(),
  keys: [generateKey()],
  prefix: 'acme',
});
const { value } = await tokens.issue({ account: 'ada', scopes: ['GET:shop.example/orders'] });
const guard = bearerGuard({ tokens, domain: 'shop.example', onError: console.error });

class OrdersController {
  show(request) {
    return { account: request.token.account };
  }
}
// In TypeScript these are decorators: @Controller('orders'), @Get(':id'), @Req() and @Module(…).
const { prototype } = OrdersController;
Controller('orders')(OrdersController);
Get(':id')(prototype, 'show', Object.getOwnPropertyDescriptor(prototype, 'show'));
Req()(prototype, 'show', 0);
class AppModule {}
Module({ controllers: [OrdersController] })(AppModule);

const app = await NestFactory.create(AppModule, { logger: ['error'] });
app.useGlobalGuards(nestGuard(guard));
await app.listen(3000, '127.0.0.1');
console.log(`curl -H 'Authorization: Bearer ${value}' http://127.0.0.1:3000/orders/7`);
