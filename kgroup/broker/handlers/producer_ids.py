"""InitProducerId for idempotent and transactional producers."""

from __future__ import annotations

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.broker.handlers.transactions import understood
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgroup.transactions.producers import ProducerEpoch

FENCED_SINCE = 4  # PRODUCER_FENCED is understood


def init_producer_id(broker: Dispatcher, call: Call[InitProducerIdRequest]) -> InitProducerIdResponse:
    """Return a new producer id with epoch 0; the transactional id's next producer if one is named."""
    request = call.body
    name = request.transactional_id
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        raise Refused(ErrorCode.INVALID_REQUEST)
    if name is None:
        allocated = broker.cluster.catalog.allocate_producer_id()
        return InitProducerIdResponse(producer_id=allocated, producer_epoch=0)
    expected = None
    if request.producer_id >= 0:
        expected = ProducerEpoch(request.producer_id, request.producer_epoch)
    try:
        outcome = broker.transactions.run(
            name,
            lambda c, now: c.init_producer_id(name, request.transaction_timeout_ms, expected, now),
            call.node,
        )
    except Refused as refused:
        code = understood(refused.code, call.version, FENCED_SINCE)
        return InitProducerIdResponse(error_code=code, producer_epoch=-1)
    return InitProducerIdResponse(
        error_code=outcome.code, producer_id=outcome.producer_id, producer_epoch=outcome.producer_epoch
    )


APIS = (Api(InitProducerIdRequest, init_producer_id),)
