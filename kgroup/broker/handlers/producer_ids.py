"""InitProducerId for idempotent producers."""

from __future__ import annotations

from kgroup.broker.call import Api, Call
from kgroup.broker.dispatch import Dispatcher
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def init_producer_id(desk: Dispatcher, call: Call) -> InitProducerIdResponse:
    """A new producer id with epoch 0; UNSUPPORTED_VERSION, which clients give up on, for transactions."""
    request = call.body
    assert isinstance(request, InitProducerIdRequest)
    if request.transactional_id is not None:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION, "transactions are not served")
    return InitProducerIdResponse(producer_id=desk.cluster.catalog.allocate_producer_id(), producer_epoch=0)


def refuse(request: Message, code: ErrorCode, message: str | None) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)


APIS = (Api(InitProducerIdRequest.API, init_producer_id, refuse),)
